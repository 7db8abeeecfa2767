/* SPDX-License-Identifier: MIT */
/* fleet/agent.c - see agent.h. There are two nodes: one that the looking thread fills in, and the
 * one that is shown; when a look is done they change places. */
#include "fleet/agent.h"

#include <errno.h>
#include <event2/event.h>
#include <malloc.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/region.h"
#include "fleet/exposition.h"
#include "fleet/http_request.h"
#include "fleet/metric_sink.h"
#include "fleet/node.h"
#include "fleet/node_metrics.h"
#include "fleet/otlp_json.h"
#include "fleet/otlp_push.h"
#include "fleet/server.h"
#include "kit/errand.h"
#include "kit/kernel_files.h"

#define NS_PER_S 1000000000u

enum { STALE_INTERVALS = 3, STALE_EXTRA_S = 30, N_STOPPING = 2 };

struct agent {
    const struct tmk_agent_settings *settings;
    struct event_base *base;
    struct event *tick, *seen, *stopping[N_STOPPING]; /* may be NULL */
    struct tmk_server *server;
    struct tmk_otlp_push *push; /* NULL: none */
    uint64_t push_due_ns;
    double start_s, scrape_s;

    struct tmk_errand errand;
    int fd;                          /* becomes readable when a look is done */
    struct tmk_collector *collector; /* this and the next two belong to the errand while it runs */
    struct tmk_node next;
    struct tmk_error problem;

    struct tmk_node shown;
    uint64_t shown_ns; /* when it was seen; 0: never */
    struct tmk_exposition text;
};

/* ---- looking ---- */

static void look_at_node(void *arg)
{
    struct agent *a = arg;
    a->problem.text[0] = '\0';
    (void)tmk_collector_look(a->collector, &a->next, &a->problem);
}

static double resident_bytes(void)
{
    char text[128];
    long pages[2];
    if (tmk_kernel_file_read(text, sizeof text, "/proc/self/statm") <= 0 ||
        tmk_kernel_numbers(text, pages, 2) != 2)
        return NAN;
    return (double)pages[1] * (double)sysconf(_SC_PAGESIZE);
}

static struct tmk_node_agent describe_agent(const struct agent *a)
{
    struct rusage use = {0};
    getrusage(RUSAGE_SELF, &use);
    struct tmk_node_agent about = {
        .start_s = a->start_s,
        .cpu_s = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                 (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6,
        .resident_bytes = resident_bytes(),
        .scrape_s = a->scrape_s,
        .reading_s = a->shown.reading_s,
        .n_watched = a->shown.n_watched,
        .n_jobs_folded = a->shown.n_jobs_folded,
        .has_otlp = a->push != NULL,
    };
    for (uint64_t i = 0; i < a->shown.n_jobs; i++)
        about.n_unreadable += !a->shown.jobs[i].is_readable && !a->shown.jobs[i].is_over;
    if (a->push) {
        about.n_exports_ok = tmk_otlp_push_n_ok(a->push);
        about.n_exports_failed = tmk_otlp_push_n_failed(a->push);
    }
    about.requests = tmk_server_requests(a->server, &about.n_requests);
    about.refused = tmk_server_refused(a->server, &about.n_refused);
    return about;
}

static void push_metrics(struct agent *a, uint64_t now)
{
    struct tmk_node_agent about = describe_agent(a);
    char *body = NULL;
    size_t n = 0;
    if (!a->push || now < a->push_due_ns || !a->shown.is_filled)
        return;
    a->push_due_ns = now + a->settings->otlp_interval_ns;
    if (tmk_otlp_json(&a->shown, &about, tmk_clock_ns(CLOCK_REALTIME), &body, &n) == 0)
        tmk_otlp_push_send(a->push, body, n);
    free(body);
}

/* A look is done: show what it saw. */
static void on_seen(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    struct agent *a = arg;
    uint64_t n;
    (void)!read(fd, &n, sizeof n);
    if (!tmk_errand_take(&a->errand))
        return;
    if (a->problem.text[0])
        a->settings->say(a->problem.text);
    if (!a->next.is_filled)
        return;
    struct tmk_node before = a->shown;
    a->shown = a->next;
    a->next = before;
    a->shown_ns = tmk_clock_monotonic_ns();
    push_metrics(a, a->shown_ns);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct agent *a = arg;
    if (tmk_errand_is_idle(&a->errand))
        tmk_errand_begin(&a->errand, look_at_node, a);
}

/* ---- answering ---- */

static void answer_text(struct tmk_http_answer *ret, int status, const char *type, const char *text)
{
    *ret = (struct tmk_http_answer){
        .status = status, .content_type = type, .body = text, .n_bytes = strlen(text)};
}

static bool is_fresh(const struct agent *a)
{
    uint64_t most =
        STALE_INTERVALS * a->settings->collecting.interval_ns + STALE_EXTRA_S * (uint64_t)NS_PER_S;
    return a->shown_ns && tmk_clock_monotonic_ns() - a->shown_ns < most;
}

static void answer_metrics(struct agent *a, const struct tmk_http_request *request,
                           struct tmk_http_answer *ret)
{
    uint64_t start_ns = tmk_clock_monotonic_ns();
    enum tmk_exposition_form form = tmk_exposition_choose(request->accept);
    struct tmk_node_agent about = describe_agent(a);
    tmk_exposition_fini(&a->text);
    tmk_exposition_init(&a->text, form);
    struct tmk_metric_sink sink = tmk_exposition_sink(&a->text);
    tmk_node_metrics(&a->shown, &about, &sink);
    if (tmk_exposition_end(&a->text) < 0) {
        *ret = (struct tmk_http_answer){.status = 500};
        return;
    }
    *ret = (struct tmk_http_answer){.status = 200,
                                    .content_type = tmk_exposition_content_type(form),
                                    .body = a->text.text,
                                    .n_bytes = (size_t)a->text.n_bytes};
    a->scrape_s = (double)(tmk_clock_monotonic_ns() - start_ns) / 1e9;
}

static void answer_request(void *arg, const struct tmk_http_request *request,
                           struct tmk_http_answer *ret)
{
    static const char plain[] = "text/plain; charset=utf-8", html[] = "text/html; charset=utf-8";
    struct agent *a = arg;
    if (strcmp(request->path, "/metrics") == 0 && !a->shown.is_filled)
        answer_text(ret, 503, plain, "nothing has been seen yet\n");
    else if (strcmp(request->path, "/metrics") == 0)
        answer_metrics(a, request, ret);
    else if (strcmp(request->path, "/healthz") == 0)
        answer_text(ret, is_fresh(a) ? 200 : 503, plain,
                    is_fresh(a) ? "ok\n" : "the devices have not answered for a while\n");
    else if (strcmp(request->path, "/") == 0)
        answer_text(ret, 200, html,
                    "<!doctype html><title>tidemark agent</title><h1>tidemark agent</h1>"
                    "<p><a href=\"/metrics\">metrics</a> <a href=\"/healthz\">health</a></p>\n");
    else
        *ret = (struct tmk_http_answer){.status = 404};
}

static bool is_public_path(const char *path)
{
    return strcmp(path, "/healthz") == 0;
}

/* ---- together ---- */

static void on_stop(evutil_socket_t number, short what, void *arg)
{
    (void)number;
    (void)what;
    event_base_loopbreak(arg);
}

static int open_events(struct agent *a, struct tmk_error *err)
{
    static const int numbers[N_STOPPING] = {SIGINT, SIGTERM};
    uint64_t ns = a->settings->collecting.interval_ns;
    struct timeval interval = {.tv_sec = (time_t)(ns / NS_PER_S),
                               .tv_usec = (suseconds_t)(ns % NS_PER_S / 1000)};
    a->base = event_base_new();
    a->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!a->base || a->fd < 0)
        return tmk_fail_os(err, TMK_EIO, errno, "cannot wait for events");
    a->errand.fd = a->fd;
    a->tick = event_new(a->base, -1, EV_PERSIST, on_tick, a);
    a->seen = event_new(a->base, a->fd, EV_READ | EV_PERSIST, on_seen, a);
    bool good =
        a->tick && a->seen && event_add(a->tick, &interval) == 0 && event_add(a->seen, NULL) == 0;
    for (int i = 0; i < N_STOPPING && good; i++) {
        a->stopping[i] = evsignal_new(a->base, numbers[i], on_stop, a->base);
        good = a->stopping[i] && event_add(a->stopping[i], NULL) == 0;
    }
    return good ? 0 : tmk_fail(err, TMK_ENOMEM, "out of memory");
}

static int open_server(struct agent *a, struct tmk_error *err)
{
    const struct tmk_agent_settings *s = a->settings;
    struct tmk_server_settings serving = {.listen = s->listen,
                                          .web_config = s->web_config,
                                          .answer = answer_request,
                                          .is_public = is_public_path,
                                          .say = s->say,
                                          .arg = a};
    struct tmk_otlp_settings pushing = {
        .url = s->otlp_url, .headers = s->otlp_headers, .ca_file = s->otlp_ca_file, .say = s->say};
    int rc = tmk_server_open(a->base, &serving, &a->server, err);
    if (rc == 0 && s->otlp_url)
        rc = tmk_otlp_push_open(a->base, &pushing, &a->push, err);
    return rc;
}

static void say_where(const struct agent *a)
{
    char url[TMK_SERVER_URL_BYTES], text[TMK_SERVER_URL_BYTES + 64];
    snprintf(text, sizeof text, "metrics are at %s/metrics", tmk_server_url(a->server, url));
    a->settings->say(text);
    if (tmk_server_is_open_to_all(a->server))
        a->settings->say("other machines can read them without a password; --web-config sets one");
}

static int open_agent(struct agent *a, struct tmk_error *err)
{
    int rc = open_events(a, err);
    if (rc == 0)
        rc = open_server(a, err);
    if (rc == 0)
        rc = tmk_collector_open(&a->settings->collecting, &a->collector, err);
    return rc;
}

/* A look that still runs, because a file system hangs, keeps what it uses. */
static void close_agent(struct agent *a)
{
    tmk_otlp_push_close(a->push);
    tmk_server_close(a->server);
    for (int i = 0; i < N_STOPPING; i++)
        if (a->stopping[i])
            event_free(a->stopping[i]);
    if (a->tick)
        event_free(a->tick);
    if (a->seen)
        event_free(a->seen);
    if (a->base)
        event_base_free(a->base);
    tmk_exposition_fini(&a->text);
    tmk_node_fini(&a->shown);
    if (!tmk_errand_is_idle(&a->errand))
        return;
    tmk_collector_close(a->collector);
    tmk_node_fini(&a->next);
    if (a->fd >= 0)
        close(a->fd);
}

/* An agent lives for months with little memory: one heap for all its threads, and small pages. */
static void save_memory(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 256 << 10);
    tmk_region_use_small_pages();
}

int tmk_agent_run(const struct tmk_agent_settings *settings, struct tmk_error *err)
{
    static struct agent a; /* a look that hangs may outlive this function */
    a = (struct agent){.settings = settings,
                       .fd = -1,
                       .start_s = (double)tmk_clock_ns(CLOCK_REALTIME) / 1e9,
                       .scrape_s = NAN};
    save_memory();
    signal(SIGPIPE, SIG_IGN);
    int rc = open_agent(&a, err);
    if (rc == 0) {
        say_where(&a);
        on_tick(-1, 0, &a);
        if (event_base_dispatch(a.base) < 0)
            rc = tmk_fail(err, TMK_EIO, "cannot wait for events");
    }
    close_agent(&a);
    return rc;
}
