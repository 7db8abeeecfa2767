/* SPDX-License-Identifier: MIT */
/* tui/screen.c - see screen.h.
 *
 * curses itself finds the least to send, but looks at every cell for that, so unchanged rows are
 * not even given to it. Signals that end us set a flag, and the loop ends in order. These and a
 * resize are blocked except while we wait for keys, so none is lost between a test and the wait.
 * The handler for crashes restores the terminal with bytes that were prepared before, because it
 * may call nothing else. */
#include "tui/screen.h"

#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <term.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "base/array.h"
#include "kit/language.h"

enum { RESTORE_BYTES = 512, ESCAPE_MS = 100 }; /* over ssh the rest of a key may arrive late */

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const int crashing[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};

static struct {
    SCREEN *curses;
    struct tmk_grid last; /* what the screen shows now */
    struct termios modes;
    char restore[RESTORE_BYTES];
    size_t n_restore;
    bool is_gone;
    sigset_t mask; /* the signal mask as it was before */
} terminal;

static volatile sig_atomic_t ended_by; /* a signal */

/* ---- signals ---- */

static void note_end(int number)
{
    ended_by = number;
}

static void end_on_crash(int number)
{
    if (write(STDOUT_FILENO, terminal.restore, terminal.n_restore) < 0)
        ended_by = number; /* nothing can be done about it */
    tcsetattr(STDIN_FILENO, TCSANOW, &terminal.modes);
    signal(number, SIG_DFL);
    raise(number);
}

static void set_handlers(const int *numbers, size_t n, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler}, before;
    for (size_t i = 0; i < n; i++) /* ignored signals (nohup) stay ignored */
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
}

static void block_ending_signals(void)
{
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGWINCH);
    for (size_t i = 0; i < TMK_N(ending); i++)
        sigaddset(&blocked, ending[i]);
    sigprocmask(SIG_BLOCK, &blocked, &terminal.mask);
}

static void unblock_ending_signals(void)
{
    sigprocmask(SIG_SETMASK, &terminal.mask, NULL);
}

static int keep_byte(int c)
{
    if (terminal.n_restore < sizeof terminal.restore)
        terminal.restore[terminal.n_restore++] = (char)c;
    return c;
}

static void prepare_restore(void)
{
    static const char *const names[] = {"rmkx", "cnorm", "sgr0", "op", "rmcup"};
    static const char mouse_off[] = "\033[?1006l\033[?1000l";
    terminal.n_restore = 0;
    for (size_t i = 0; i < TMK_N(names); i++) {
        char *text = tigetstr(names[i]);
        if (text && text != (char *)-1)
            tputs(text, 1, keep_byte);
    }
    for (size_t i = 0; key_mouse && mouse_off[i]; i++)
        keep_byte(mouse_off[i]);
}

/* ---- opening and closing ---- */

static const char *terminal_name(void)
{
    const char *name = getenv("TERM");
    return name ? name : "";
}

bool tmk_screen_is_utf8(void)
{
    const char *name = terminal_name();
    setlocale(LC_CTYPE, "");
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0 && strcmp(name, "linux") != 0 &&
           strncmp(name, "vt", 2) != 0;
}

static void choose_colours(void)
{
    const char *none = getenv("NO_COLOR");
    if ((none && none[0]) || !has_colors())
        return;
    start_color();
    use_default_colors();
    init_pair(TMK_INK_GOOD, COLOR_GREEN, -1);
    init_pair(TMK_INK_WARN, COLOR_YELLOW, -1);
    init_pair(TMK_INK_BAD, COLOR_RED, -1);
    init_pair(TMK_INK_GRAPH, COLOR_CYAN, -1);
    init_pair(TMK_INK_KEY, COLOR_CYAN, -1);
    init_pair(TMK_INK_SORTED, COLOR_CYAN, -1);
}

static int refuse_screen(struct tmk_error *err, const char *before, const char *after)
{
    return tmk_fail(err, TMK_EINVAL,
                    "%s TERM=%s%s; try: TERM=xterm-256color tidemark top, or: tidemark top --once",
                    before, terminal_name(), after);
}

/* Start curses. It also accepts terminals that cannot place the cursor, and fills them with lines;
 * these are refused. */
static int start_curses(struct tmk_error *err)
{
    int status = 0;
    if (setupterm(NULL, STDOUT_FILENO, &status) != OK && status != 1)
        return refuse_screen(err, _("this machine does not know the terminal"), "");
    if (!cur_term || !cursor_address)
        return refuse_screen(err, _("the terminal"), _(" cannot place its cursor"));
    terminal.curses = newterm(NULL, stdout, stdin);
    if (!terminal.curses)
        return refuse_screen(err, _("this machine does not know the terminal"), "");
    set_term(terminal.curses);
    return 0;
}

int tmk_screen_open(struct tmk_error *err)
{
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return tmk_fail(err, TMK_EINVAL,
                        "this needs a terminal; for a file or a pipe: tidemark top --once");
    tcgetattr(STDIN_FILENO, &terminal.modes);
    set_handlers(ending, TMK_N(ending), note_end);
    int rc = start_curses(err);
    if (rc < 0)
        return rc;
    block_ending_signals();
    set_escdelay(ESCAPE_MS);
    cbreak();
    noecho();
    nonl();
    curs_set(0);
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    mouseinterval(0);
    mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
    choose_colours();
    prepare_restore();
    set_handlers(crashing, TMK_N(crashing), end_on_crash);
    return 0;
}

void tmk_screen_close(void)
{
    if (!terminal.curses)
        return;
    mousemask(0, NULL);
    if (exit_ca_mode) { /* tmux 3.3 keeps lines of a resized screen, unless that is blank */
        erase();
    } else { /* there is no other screen to return to: the prompt comes here */
        move(LINES - 1, 0);
        clrtoeol();
    }
    refresh();
    endwin();
    delscreen(terminal.curses);
    terminal.curses = NULL;
    tmk_grid_fini(&terminal.last);
    set_handlers(crashing, TMK_N(crashing), SIG_DFL);
    unblock_ending_signals();
}

void tmk_screen_reraise(void)
{
    if (ended_by == 0)
        return;
    signal(ended_by, SIG_DFL);
    raise(ended_by);
}

bool tmk_screen_is_over(void)
{
    return ended_by != 0 || terminal.is_gone;
}

/* ---- other programs ---- */

/* The environment with more variables; the caller's, for free(). NULL: no memory. */
static char **join_environment(const char *const *more)
{
    size_t n = 0, n_more = 0;
    while (environ[n])
        n++;
    while (more && more[n_more])
        n_more++;
    char **joined = calloc(n + n_more + 1, sizeof *joined);
    for (size_t i = 0; joined && i < n_more; i++) /* the first of a name counts */
        memcpy(&joined[i], &more[i], sizeof *joined);
    for (size_t i = 0; joined && i < n; i++)
        joined[n_more + i] = environ[i];
    return joined;
}

/* Start a program with the signals as they were before us. */
static int start_program(const char *const *words, const char *const *more, pid_t *ret_pid)
{
    posix_spawnattr_t attributes;
    char **argv = NULL, **envp = join_environment(more);
    sigset_t defaults;
    sigemptyset(&defaults);
    for (size_t i = 0; i < TMK_N(ending); i++)
        sigaddset(&defaults, ending[i]);
    memcpy(&argv, &words, sizeof argv);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &terminal.mask);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int problem = envp ? posix_spawn(ret_pid, words[0], NULL, &attributes, argv, envp) : ENOMEM;
    posix_spawnattr_destroy(&attributes);
    free(envp);
    return problem;
}

/* Keys that send signals go to the program alone: we are in its process group. */
static void ignore_keys_signals(bool ignore)
{
    signal(SIGINT, ignore ? SIG_IGN : note_end);
    signal(SIGQUIT, ignore ? SIG_IGN : note_end);
}

int tmk_screen_run(const char *const *words, const char *const *more)
{
    pid_t pid;
    int status = -1;
    def_prog_mode();
    mousemask(0, NULL);
    endwin();
    ignore_keys_signals(true);
    if (start_program(words, more, &pid) == 0)
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    if (status > 0 && WIFSIGNALED(status) && write(STDOUT_FILENO, "\r\n", 2) < 0)
        terminal.is_gone = true; /* it was ended in the middle of a line */
    ignore_keys_signals(true);   /* forgets those that wait because we block them */
    ignore_keys_signals(false);
    reset_prog_mode();
    mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
    clearok(stdscr, TRUE);
    tmk_grid_fini(&terminal.last); /* everything is shown again */
    if (status < 0 || WIFEXITED(status))
        return status < 0 ? -1 : WEXITSTATUS(status);
    return 128 + WTERMSIG(status);
}

/* ---- showing ---- */

void tmk_screen_size(unsigned *ret_width, unsigned *ret_height)
{
    int height, width;
    getmaxyx(stdscr, height, width);
    *ret_width = width > 0 ? (unsigned)width : 0;
    *ret_height = height > 0 ? (unsigned)height : 0;
}

static attr_t look_of(uint32_t ink)
{
    static const attr_t looks[TMK_INK_N] = {
        [TMK_INK_DIM] = A_DIM,
        [TMK_INK_STRONG] = A_BOLD,
        [TMK_INK_TITLE] = A_REVERSE,
        [TMK_INK_HEAD] = A_BOLD | A_UNDERLINE,
        [TMK_INK_SORTED] = A_BOLD | A_UNDERLINE,
        [TMK_INK_SELECTED] = A_REVERSE,
        [TMK_INK_BAD] = A_BOLD,
        [TMK_INK_KEY] = A_BOLD,
    };
    return looks[ink < TMK_INK_N ? ink : 0];
}

static short ink_colour(uint32_t ink)
{
    short foreground = 0, background = 0;
    bool has_pair = ink < TMK_INK_N && COLOR_PAIRS > (int)ink &&
                    pair_content((short)ink, &foreground, &background) == OK &&
                    foreground != background && foreground > 0;
    return has_pair ? (short)ink : 0;
}

static void show_row(const struct tmk_grid *g, unsigned y, const short *colours)
{
    for (unsigned x = 0; x < g->width; x++) {
        const struct tmk_screen_cell *cell = tmk_grid_cell(g, x, y);
        const struct tmk_screen_cell *next = tmk_grid_cell(g, x + 1, y);
        if (cell->c == 0)
            continue;
        int width = next && next->c == 0 ? 2 : 1;
        wchar_t text[2] = {(wchar_t)cell->c, 0};
        cchar_t out;
        if (wcwidth(text[0]) != width) /* the terminal's library gives it another width */
            text[0] = '?';
        setcchar(&out, text, look_of(cell->ink), colours[cell->ink], NULL);
        mvadd_wchnstr((int)y, (int)x, &out, 1);
        if (text[0] == '?' && width == 2)
            mvadd_wchnstr((int)y, (int)x + 1, &out, 1);
    }
}

static bool same_row(const struct tmk_grid *a, const struct tmk_grid *b, unsigned y)
{
    size_t n = a->width * sizeof *a->cells;
    return memcmp(&a->cells[(size_t)y * a->width], &b->cells[(size_t)y * a->width], n) == 0;
}

void tmk_screen_show(const struct tmk_grid *g)
{
    struct tmk_grid *last = &terminal.last;
    bool is_same_size = last->cells && last->width == g->width && last->height == g->height;
    short colours[TMK_INK_N];
    for (uint32_t ink = 0; ink < TMK_INK_N; ink++)
        colours[ink] = ink_colour(ink);
    if (!is_same_size)
        erase();
    for (unsigned y = 0; y < g->height; y++)
        if (!is_same_size || !same_row(g, last, y))
            show_row(g, y, colours);
    refresh();
    if (!is_same_size) {
        tmk_grid_fini(last);
        if (tmk_grid_init(last, g->width, g->height, g->ascii) < 0)
            return; /* everything will be shown again */
    }
    memcpy(last->cells, g->cells, (size_t)g->width * g->height * sizeof *g->cells);
}

/* ---- keys ---- */

static struct tmk_key mouse_key(void)
{
    MEVENT event;
    if (getmouse(&event) != OK)
        return (struct tmk_key){0};
    if (event.bstate & BUTTON4_PRESSED)
        return (struct tmk_key){.kind = TMK_KEY_UP};
    if (event.bstate & BUTTON5_PRESSED)
        return (struct tmk_key){.kind = TMK_KEY_DOWN};
    return (struct tmk_key){.kind = TMK_KEY_CLICK, .x = (unsigned)event.x, .y = (unsigned)event.y};
}

static struct tmk_key function_key(wint_t c)
{
    static const struct {
        wint_t code;
        enum tmk_key_kind kind;
    } keys[] = {
        {KEY_UP, TMK_KEY_UP},         {KEY_DOWN, TMK_KEY_DOWN},
        {KEY_LEFT, TMK_KEY_LEFT},     {KEY_RIGHT, TMK_KEY_RIGHT},
        {KEY_PPAGE, TMK_KEY_PAGE_UP}, {KEY_NPAGE, TMK_KEY_PAGE_DOWN},
        {KEY_HOME, TMK_KEY_HOME},     {KEY_END, TMK_KEY_END},
        {KEY_ENTER, TMK_KEY_ENTER},   {KEY_BACKSPACE, TMK_KEY_BACKSPACE},
        {KEY_RESIZE, TMK_KEY_RESIZE},
    };
    if (c == KEY_MOUSE)
        return mouse_key();
    for (size_t i = 0; i < TMK_N(keys); i++)
        if (keys[i].code == c)
            return (struct tmk_key){.kind = keys[i].kind};
    return (struct tmk_key){0};
}

static struct tmk_key plain_key(wint_t c)
{
    enum { ESCAPE = 27, DELETE = 127 };
    enum tmk_key_kind kind = c == '\r' || c == '\n'     ? TMK_KEY_ENTER
                             : c == '\t'                ? TMK_KEY_TAB
                             : c == ESCAPE              ? TMK_KEY_ESCAPE
                             : c == '\b' || c == DELETE ? TMK_KEY_BACKSPACE
                                                        : TMK_KEY_CHARACTER;
    return (struct tmk_key){.kind = kind, .c = c};
}

static bool try_key(struct tmk_key *ret)
{
    wint_t c;
    int kind = get_wch(&c);
    if (kind == ERR)
        return false;
    *ret = kind == KEY_CODE_YES ? function_key(c) : plain_key(c);
    return true;
}

/* Deliver waiting signals: keys that come without a pause must not keep them out. */
static void let_signals_in(void)
{
    unblock_ending_signals();
    block_ending_signals();
}

struct tmk_key tmk_screen_key(unsigned wait_ms)
{
    struct tmk_key key = {0};
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    struct timespec wait = {wait_ms / 1000, wait_ms % 1000 * 1000000L};
    if (try_key(&key)) {
        let_signals_in();
        return key;
    }
    int n = ppoll(&input, 1, &wait, &terminal.mask); /* a signal ends the wait: a resize is a key */
    int waiting = 0;
    bool has_input = n > 0 && (input.revents & POLLIN) && ioctl(0, FIONREAD, &waiting) == 0;
    if (n > 0 && (!has_input || waiting == 0))
        terminal.is_gone = true;
    else
        try_key(&key);
    return key;
}
