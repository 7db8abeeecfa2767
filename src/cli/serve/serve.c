/* SPDX-License-Identifier: MIT */
/* cli/serve/serve.c - see serve.h. Two threads: this one has the connections and never waits; the
 * worker (served_answers.h) has the run. */
#include "cli/serve/serve.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/output/html.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/serve/served_answers.h"
#include "cli/serve/served_run.h"
#include "fleet/http_request.h"
#include "fleet/server.h"
#include "kit/language.h"
#include "web/gate.h"

/* web/dist/page.js and style.css, built from web/. */
extern const char tmk_page_program[];
extern const char tmk_page_style[];

enum { TICK_MS = 250, NODE_TICKS = 8, QUIET_TICKS = 60, BODY_MOST = 64 << 10, N_STOPS = 2 };

/* Nothing but this server's own files may run, be shown or be asked; nothing is kept. */
static const char guard_fields[] =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "X-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\n";

static const char node_event[] = "event: node\ndata: {}\n\n";

struct serving {
    const struct tmk_serve_settings *settings;
    struct tmk_page_gate gate;
    struct tmk_served_answers answers;
    struct event_base *base;
    struct event *tick, *done, *stops[N_STOPS];
    struct tmk_server *server;
    int fd; /* readable when a query is done */
    unsigned n_ticks;
    bool is_live;
    uint64_t n_states; /* told so far */
    char fields[TMK_GATE_FIELDS_BYTES];
    char *shell; /* the page's markup */
    size_t n_shell;
    char hello[96];
};

/* ---- answering ---- */

static void answer_plain(struct tmk_http_answer *ret, int status, const char *text)
{
    *ret = (struct tmk_http_answer){.status = status,
                                    .content_type = "text/plain; charset=utf-8",
                                    .body = text,
                                    .n_bytes = strlen(text)};
}

static void answer_file(struct tmk_http_answer *ret, const char *type, const char *text, size_t n)
{
    *ret =
        (struct tmk_http_answer){.status = 200, .content_type = type, .body = text, .n_bytes = n};
}

/* Which state the run is in, as an event. */
static const char *state_event(struct serving *s, size_t *ret_n)
{
    bool is_live = s->answers.is_node || s->is_live;
    *ret_n = (size_t)snprintf(s->hello, sizeof s->hello,
                              "event: state\ndata: {\"state\":%" PRIu64 ",\"live\":%s}\n\n",
                              s->n_states, is_live ? "true" : "false");
    return s->hello;
}

static void answer_events(struct serving *s, struct tmk_http_answer *ret)
{
    *ret = (struct tmk_http_answer){
        .status = 200, .content_type = "text/event-stream", .is_stream = true};
    ret->body = state_event(s, &ret->n_bytes);
}

static void answer_query(struct serving *s, const struct tmk_served_query *q,
                         struct tmk_http_answer *ret)
{
    int status;
    const struct tmk_served_body *b = tmk_served_answers_ask(&s->answers, q, &status);
    *ret = (struct tmk_http_answer){.status = status};
    if (b)
        *ret = (struct tmk_http_answer){
            .status = b->status, .content_type = b->type, .body = b->bytes, .n_bytes = b->n};
}

static const struct {
    const char *path;
    enum tmk_served_kind kind;
    bool is_posted;
} queries[] = {
    {"/api/page", TMK_SERVED_PAGE, false},
    {"/api/summary", TMK_SERVED_SUMMARY, false},
    {"/api/timeline", TMK_SERVED_TIMELINE, false},
    {"/api/peak", TMK_SERVED_PEAK, false},
    {"/api/sql", TMK_SERVED_SQL, true},
    {"/api/node", TMK_SERVED_NODE, false},
};

static void answer_api(struct serving *s, const char *path, const struct tmk_http_request *r,
                       struct tmk_http_answer *ret)
{
    unsigned i = 0;
    while (i < TMK_N(queries) && strcmp(path, queries[i].path) != 0)
        i++;
    if (i == TMK_N(queries) || (queries[i].kind == TMK_SERVED_NODE && !s->answers.is_node))
        *ret = (struct tmk_http_answer){.status = 404};
    else if (r->is_post != queries[i].is_posted)
        *ret = (struct tmk_http_answer){.status = 405};
    else if (r->is_post && strncasecmp(r->content_type, "application/sql", 15) != 0)
        *ret = (struct tmk_http_answer){.status = 415};
    else
        answer_query(s,
                     &(struct tmk_served_query){queries[i].kind, r->query,
                                                r->is_post ? (r->body ? r->body : "") : NULL},
                     ret);
}

static void answer_granted(struct serving *s, const struct tmk_http_request *r,
                           struct tmk_http_answer *ret)
{
    const char *path = tmk_gate_path(&s->gate, r->path);
    if (strncmp(path, "/api/", 5) == 0 && strcmp(path, "/api/events") != 0)
        answer_api(s, path, r, ret);
    else if (r->is_post)
        *ret = (struct tmk_http_answer){.status = 405};
    else if (strcmp(path, "/") == 0)
        answer_file(ret, "text/html; charset=utf-8", s->shell, s->n_shell);
    else if (strcmp(path, "/page.js") == 0)
        answer_file(ret, "text/javascript", tmk_page_program, strlen(tmk_page_program));
    else if (strcmp(path, "/style.css") == 0)
        answer_file(ret, "text/css", tmk_page_style, strlen(tmk_page_style));
    else if (strcmp(path, "/api/events") == 0)
        answer_events(s, ret);
    else
        *ret = (struct tmk_http_answer){.status = 404};
}

static void answer_request(void *arg, const struct tmk_http_request *r, struct tmk_http_answer *ret)
{
    struct serving *s = arg;
    switch (tmk_gate_check(&s->gate, r)) {
    case TMK_GATE_WRONG_HOST:
        answer_plain(ret, 421, "this name is not one of this server\n");
        break;
    case TMK_GATE_FORBIDDEN:
        answer_plain(ret, 403, "open the link that tidemark serve has printed\n");
        break;
    case TMK_GATE_ENTERED:
        answer_plain(ret, 303, "");
        ret->fields = tmk_gate_entry_fields(&s->gate, s->fields);
        break;
    default:
        answer_granted(s, r, ret);
    }
}

/* ---- events ---- */

static void push_state(struct serving *s)
{
    size_t n;
    const char *event = state_event(s, &n);
    tmk_server_push(s->server, event, n);
}

static void on_done(evutil_socket_t fd, short what, void *arg)
{
    struct serving *s = arg;
    uint64_t n;
    (void)what;
    (void)!read(fd, &n, sizeof n);
    if (!tmk_served_answers_take(&s->answers))
        return;
    bool was_live = s->is_live;
    s->is_live = s->answers.run.is_live; /* the worker is idle */
    tmk_server_ask_again(s->server);
    if (s->answers.has_new_state || was_live != s->is_live) {
        s->n_states++;
        push_state(s);
    }
    tmk_served_answers_go_on(&s->answers);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct serving *s = arg;
    (void)fd;
    (void)what;
    s->n_ticks++;
    tmk_served_answers_tick(&s->answers);
    if (s->answers.is_node && s->n_ticks % NODE_TICKS == 0) {
        tmk_served_answers_forget(&s->answers, TMK_SERVED_NODE);
        tmk_server_push(s->server, node_event, sizeof node_event - 1);
    } else if (s->n_ticks % QUIET_TICKS == 0) {
        tmk_server_push(s->server, ":\n\n", 3); /* a proxy may close what is silent */
    }
}

static void on_stop(evutil_socket_t number, short what, void *arg)
{
    (void)number;
    (void)what;
    event_base_loopbreak(arg);
}

/* ---- together ---- */

static bool needs_no_password(const char *path)
{
    (void)path;
    return true; /* the gate's */
}

static void say_text(const char *text)
{
    tmk_say("%s", text);
}

static void write_shell(struct serving *s)
{
    FILE *out = tmk_xmemstream(&s->shell, &s->n_shell);
    const char *name = s->settings->target ? s->settings->target : "tidemark";
    fputs(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n"
        "<link rel=\"stylesheet\" href=\"style.css\">\n",
        out);
    tmk_html_element(out, "title", "%s - tidemark", name);
    fprintf(out, "</head>\n<body data-served=\"%s\">\n<div id=\"page\"><p>...</p></div>\n",
            s->answers.is_node ? "node" : "run");
    fputs("<script src=\"page.js\"></script>\n</body>\n</html>\n", out);
    if (fclose(out) != 0)
        tmk_die("out of memory");
}

static int open_events(struct serving *s)
{
    static const int numbers[N_STOPS] = {SIGINT, SIGTERM};
    struct timeval interval = {.tv_usec = TICK_MS * 1000};
    s->base = event_base_new();
    s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!s->base || s->fd < 0)
        tmk_die("cannot wait for events: %s", strerror(errno));
    s->answers.errand.fd = s->fd;
    s->tick = event_new(s->base, -1, EV_PERSIST, on_tick, s);
    s->done = event_new(s->base, s->fd, EV_READ | EV_PERSIST, on_done, s);
    bool is_good =
        s->tick && s->done && event_add(s->tick, &interval) == 0 && event_add(s->done, NULL) == 0;
    for (int i = 0; i < N_STOPS && is_good; i++) {
        s->stops[i] = evsignal_new(s->base, numbers[i], on_stop, s->base);
        is_good = s->stops[i] && event_add(s->stops[i], NULL) == 0;
    }
    if (!is_good)
        tmk_die("out of memory");
    return 0;
}

static void free_events(struct serving *s)
{
    tmk_server_close(s->server);
    for (int i = 0; i < N_STOPS; i++)
        if (s->stops[i])
            event_free(s->stops[i]);
    if (s->tick)
        event_free(s->tick);
    if (s->done)
        event_free(s->done);
    if (s->base)
        event_base_free(s->base);
    free(s->shell);
}

/* Whether an address ends in a port: "HOST:PORT" or "[::1]:PORT", but not "::1". */
static bool names_port(const char *address)
{
    const char *colon = strrchr(address, ':'), *bracket = strrchr(address, ']');
    return colon && (bracket ? colon > bracket : strchr(address, ':') == colon);
}

/* "127.0.0.1:0" of what was given; the caller's. */
static char *listen_address(const struct tmk_serve_settings *s)
{
    const char *address = s->listen ? s->listen : "127.0.0.1";
    bool is_bare_6 = strchr(address, ':') && address[0] != '[';
    if (names_port(address))
        return tmk_xstrdup(address);
    return tmk_xformat("%s%s%s:%s", is_bare_6 ? "[" : "", address, is_bare_6 ? "]" : "",
                       s->port ? s->port : "0");
}

static int open_server(struct serving *s)
{
    char *listen = listen_address(s->settings);
    struct tmk_error err = {0};
    struct tmk_server_settings settings = {.listen = listen,
                                           .answer = answer_request,
                                           .is_public = needs_no_password,
                                           .say = say_text,
                                           .body_most = BODY_MOST,
                                           .fields = guard_fields,
                                           .arg = s};
    int rc = tmk_server_open(s->base, &settings, &s->server, &err);
    free(listen);
    if (rc == 0) {
        s->gate.port = tmk_server_port(s->server);
        return 0;
    }
    tmk_say("%s", err.text);
    return rc == TMK_EINVAL ? TMK_EXIT_USAGE : TMK_EXIT_FINDING;
}

/* The third word of SSH_CONNECTION is this machine as the user's machine calls it. */
static void print_ssh_line(const struct serving *s)
{
    char host[128];
    const char *connection = getenv("SSH_CONNECTION");
    if (!connection || sscanf(connection, "%*s %*s %127s", host) != 1)
        return;
    printf(_("From the machine that you sit at: ssh -L %u:127.0.0.1:%u %s\n"), s->gate.port,
           s->gate.port, host);
}

static void print_link(const struct serving *s)
{
    char url[TMK_SERVER_URL_BYTES];
    printf("%s%s?token=%s\n", tmk_server_url(s->server, url), s->gate.base_path, s->gate.token);
    print_ssh_line(s);
    printf(_("Ctrl-C ends it.\n"));
    fflush(stdout);
    if (tmk_server_is_open_to_all(s->server))
        tmk_say("warning: other machines can connect, and the connection is not encrypted: who "
                "reads the link on its way can read the run");
}

static int open_run(struct serving *s)
{
    const struct tmk_serve_settings *settings = s->settings;
    int status = 0;
    s->answers.is_node = !settings->target;
    if (settings->target)
        status = tmk_served_run_open(&s->answers.run, settings->target, settings->rank);
    s->is_live = s->answers.run.is_live;
    return status;
}

int tmk_serve_run(const struct tmk_serve_settings *settings)
{
    static struct serving s; /* a query that still runs may outlive this function */
    s = (struct serving){.settings = settings, .fd = -1};
    signal(SIGPIPE, SIG_IGN);
    if (!tmk_gate_init(&s.gate, settings->base_path, settings->host)) {
        tmk_say("--base-path: '%s' is not a path, such as /proxy/8000/", settings->base_path);
        return TMK_EXIT_USAGE;
    }
    if (settings->port && settings->listen && names_port(settings->listen)) {
        tmk_say("--listen %s names a port already; leave --port out", settings->listen);
        return TMK_EXIT_USAGE;
    }
    tmk_served_answers_init(&s.answers);
    int status = open_run(&s);
    if (status == 0)
        status = open_events(&s);
    if (status == 0)
        status = open_server(&s);
    if (status == 0) {
        write_shell(&s);
        print_link(&s);
        event_base_dispatch(s.base);
    }
    free_events(&s);
    if (tmk_served_answers_fini(&s.answers) && s.fd >= 0)
        close(s.fd);
    return status;
}
