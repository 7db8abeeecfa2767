/* SPDX-License-Identifier: MIT */
/* record/socket/eval.c - see eval.h.
 *
 * Three threads have to do with an eval. The door's gives the order, watches the time and never
 * touches the interpreter, whose lock (the GIL) it might not get back. The eval's own (or the main
 * thread, through a pending call) waits for the lock and runs the code. A stopper is started when
 * time is up, to raise an exception in it, which needs the lock as well.
 *
 *     FREE -> PENDING -> RUNNING -> FINISHING -> ENDED      by compare and exchange
 *                    \-> CANCELLED                          time was up: it must not run any more
 *
 * FINISHING, entered under the lock, is when the stopper may not raise any more and ours is undone.
 * At most one pending call is in the interpreter's queue; it runs whatever order is PENDING when it
 * comes to it, so orders that were cancelled do not fill the queue. */
#include "record/socket/eval.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/futex.h"
#include "base/text.h"
#include "base/wire.h"
#include "record/core/helper.h"
#include "record/python/python.h"

enum eval_state { FREE = 0, PENDING, RUNNING, FINISHING, ENDED, CANCELLED };

enum { EVAL_STACK_BYTES = 8 << 20, STOPPER_STACK_BYTES = 512 * 1024, FRAME_BYTES = 64 * 1024 };
static const uint64_t ms_ns = 1000000u;
static const uint64_t look_ns = 20000000u;      /* between looks whether the client is there */
static const uint64_t grace_ns = 1000000000u;   /* for the exception to end the code */
static const uint64_t closing_ns = 1000000000u; /* for a thread that is done to be gone */

struct eval_job {
    pid_t owner; /* a forked child has a copy, which is not its own */
    _Atomic uint32_t state;
    _Atomic uint32_t n_threads;
    _Atomic uint32_t is_queued;  /* a pending call is in the interpreter's queue */
    _Atomic uint32_t is_stopped; /* the exception was raised */
    const struct tmk_python *py;
    bool on_main;
    unsigned long ident; /* Python's, of the thread that runs it */
    long serial;
    size_t n_code;
    uint64_t began_ns;
    struct tmk_object *timeout_class; /* the module's, which lives as long as the interpreter */
    pthread_mutex_t lock;             /* of what follows */
    int client;                       /* -1: nobody listens any more */
    uint64_t n_sent;
};

static struct eval_job eval_job;
static char eval_code[TMK_WIRE_CODE_MAX];

static bool is_own_job(void)
{
    return eval_job.owner == getpid();
}

/* ---- to the client ---- */

/* In parts: the client may go while a long text is on its way. Holds the lock. */
static void send_parts(enum tmk_wire_kind kind, const char *bytes, size_t n)
{
    while (n > 0 && eval_job.client >= 0) {
        size_t part = n < FRAME_BYTES ? n : FRAME_BYTES;
        if (tmk_wire_send(eval_job.client, kind, bytes, part) < 0)
            eval_job.client = -1;
        bytes += part;
        n -= part;
    }
}

static void send_bounded(enum tmk_wire_kind kind, const char *bytes, size_t n)
{
    static const char note[] = "the output was cut after 16 MiB";
    pthread_mutex_lock(&eval_job.lock);
    uint64_t room = TMK_WIRE_OUTPUT_MAX - eval_job.n_sent;
    send_parts(kind, bytes, n < room ? n : (size_t)room);
    if (n > room && room > 0)
        send_parts(TMK_WIRE_NOTE, note, sizeof note - 1);
    eval_job.n_sent += n < room ? n : room;
    pthread_mutex_unlock(&eval_job.lock);
}

/* emit(kind, bytes), for the Python side. Sends without the interpreter's lock: others run then. */
static struct tmk_object *emit_output(struct tmk_object *self, struct tmk_object *arguments)
{
    const struct tmk_python *py = eval_job.py;
    char *bytes = NULL;
    long n = 0;
    (void)self;
    struct tmk_object *kind = py->PyTuple_GetItem(arguments, 0);
    struct tmk_object *data = kind ? py->PyTuple_GetItem(arguments, 1) : NULL;
    if (!data || py->PyBytes_AsStringAndSize(data, &bytes, &n) < 0)
        return NULL;
    enum tmk_wire_kind which = (enum tmk_wire_kind)py->PyLong_AsLong(kind);
    if (is_own_job()) {
        void *thread = py->PyEval_SaveThread();
        send_bounded(which, bytes, (size_t)n);
        py->PyEval_RestoreThread(thread);
    }
    return py->Py_BuildValue("");
}

static void tell_client(enum tmk_wire_kind kind, const char *text)
{
    if (!is_own_job()) /* in a child that the code has forked, the lock may be anybody's */
        return;
    pthread_mutex_lock(&eval_job.lock);
    send_parts(kind, text, strlen(text));
    pthread_mutex_unlock(&eval_job.lock);
}

/* ---- with the interpreter's lock ---- */

/* The functions of eval_source.c. */
static struct tmk_object *load_eval_source(const struct tmk_python *py)
{
    struct tmk_object *names = tmk_python_names(py, "_tidemark_eval");
    if (!names || py->PyDict_GetItemString(names, "run"))
        return names;
    return tmk_python_run(py, names, tmk_eval_source) ? names : NULL;
}

/* Call one of them with up to three arguments, which are taken. */
static struct tmk_object *call_python(const struct tmk_python *py, struct tmk_object *names,
                                      const char *function, struct tmk_object *a,
                                      struct tmk_object *b, struct tmk_object *c)
{
    struct tmk_object *const arguments[] = {a, b, c};
    long n = c ? 3 : b ? 2 : 1;
    struct tmk_object *tuple = py->PyTuple_New(n);
    for (long i = 0; i < n && tuple; i++)
        py->PyTuple_SetItem(tuple, i, arguments[i]);
    struct tmk_object *result =
        tuple ? py->PyObject_CallObject(py->PyDict_GetItemString(names, function), tuple) : NULL;
    py->Py_DecRef(tuple);
    return result;
}

/* No exception from the stopper any more; take back one that has not come yet. */
static void finish_running(const struct tmk_python *py)
{
    atomic_store(&eval_job.state, FINISHING);
    py->PyThreadState_SetAsyncExc(eval_job.ident, NULL);
    py->PyErr_Clear();
}

/* Run the code between begin() and end(): what run() returned, -1 when it did not. */
static long run_between(const struct tmk_python *py, struct tmk_object *names,
                        struct tmk_object *function)
{
    long status = -1;
    py->Py_IncRef(function);
    struct tmk_object *streams = call_python(py, names, "begin", function, NULL, NULL);
    struct tmk_object *text = py->PyUnicode_DecodeUTF8(eval_code, (long)eval_job.n_code, "strict");
    if (streams && text) {
        py->Py_IncRef(function);
        struct tmk_object *result =
            call_python(py, names, "run", function, text, py->PyLong_FromLong(++eval_job.serial));
        if (result)
            status = py->PyLong_AsLong(result);
        py->Py_DecRef(result);
    } else {
        py->Py_DecRef(text);
    }
    finish_running(py);
    if (streams)
        py->Py_DecRef(py->PyObject_CallObject(py->PyDict_GetItemString(names, "end"), streams));
    py->Py_DecRef(streams);
    return status;
}

static long run_code(const struct tmk_python *py)
{
    static struct tmk_python_method method = {"emit", emit_output, TMK_PYTHON_VARARGS, NULL};
    long status = -1;
    struct tmk_object *names = load_eval_source(py);
    struct tmk_object *function = names ? py->PyCFunction_NewEx(&method, NULL, NULL) : NULL;
    if (function) {
        eval_job.timeout_class = py->PyDict_GetItemString(names, "EvalTimeout");
        status = run_between(py, names, function);
    }
    py->Py_DecRef(function);
    finish_running(py);
    return status;
}

/* Take the order, unless its time is up, and carry it out. True: the main thread got a ^C. */
static bool take_eval_order(void)
{
    const struct tmk_python *py = eval_job.py;
    uint32_t pending = PENDING;
    eval_job.ident = py->PyThread_get_thread_ident();
    if (!atomic_compare_exchange_strong(&eval_job.state, &pending, RUNNING))
        return false;
    long status = run_code(py);
    if (status < 0 && !atomic_load(&eval_job.is_stopped)) {
        void *thread = py->PyEval_SaveThread();
        tell_client(TMK_WIRE_FAIL, "the code could not be run: it is not UTF-8, or memory ran out");
        py->PyEval_RestoreThread(thread);
    }
    tmk_futex_set(&eval_job.state, ENDED);
    return status == 2;
}

/* ---- threads ---- */

/* Threads and programs that the code starts inherit this thread's signal mask: they must not have
 * everything blocked, as our helpers have. Nothing blocked would be wrong too: where the program
 * blocks a signal to wait for it, it must not find a thread that takes it. So: as on the main
 * thread, which is the one that /proc/self/status is about. */
static void adopt_signal_mask(void)
{
    char text[4096];
    sigset_t mask;
    uint64_t bits = 0;
    int fd = tmk_fd_raise(open("/proc/self/status", O_RDONLY | O_CLOEXEC));
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n < 0 ? 0 : n] = '\0';
    const char *at = strstr(text, "\nSigBlk:\t");
    if (!at)
        return;
    for (at += 9; (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f'); at++)
        bits = bits << 4 | (uint64_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
    sigemptyset(&mask);
    for (int signal = 1; signal <= 64; signal++)
        if (bits >> (signal - 1) & 1)
            sigaddset(&mask, signal);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static void *eval_main(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "tidemark-eval", 0, 0, 0);
    adopt_signal_mask();
    int lock = eval_job.py->PyGILState_Ensure();
    (void)take_eval_order();
    eval_job.py->PyGILState_Release(lock);
    atomic_fetch_sub(&eval_job.n_threads, 1);
    tmk_futex_wake(&eval_job.n_threads);
    return NULL;
}

/* Py_AddPendingCall: on the main thread, with the lock. */
static int eval_pending(void *unused)
{
    (void)unused;
    if (!is_own_job())
        return 0;
    atomic_store(&eval_job.is_queued, 0);
    if (atomic_load(&eval_job.state) != PENDING || !eval_job.on_main || !take_eval_order())
        return 0;
    eval_job.py->PyErr_SetNone(*eval_job.py->keyboard_interrupt_class); /* it was the job's */
    return -1;
}

static void *stop_main(void *unused)
{
    const struct tmk_python *py = eval_job.py;
    (void)unused;
    prctl(PR_SET_NAME, "tidemark-stop", 0, 0, 0);
    int lock = py->PyGILState_Ensure();
    if (atomic_load(&eval_job.state) == RUNNING && eval_job.timeout_class) {
        atomic_store(&eval_job.is_stopped, 1);
        py->PyThreadState_SetAsyncExc(eval_job.ident, eval_job.timeout_class);
    }
    py->PyGILState_Release(lock);
    atomic_fetch_sub(&eval_job.n_threads, 1);
    tmk_futex_wake(&eval_job.n_threads);
    return NULL;
}

static bool start_eval_thread(void *(*thread_main)(void *), size_t stack_bytes)
{
    atomic_fetch_add(&eval_job.n_threads, 1);
    if (tmk_helper_start(thread_main, NULL, stack_bytes))
        return true;
    atomic_fetch_sub(&eval_job.n_threads, 1);
    return false;
}

/* ---- the door's side ---- */

unsigned tmk_eval_n_threads(void)
{
    return is_own_job() ? atomic_load(&eval_job.n_threads) : 0;
}

static bool is_eval_over(void)
{
    uint32_t state = atomic_load(&eval_job.state);
    return state == FREE || state == ENDED || state == CANCELLED;
}

/* A thread that has told its result is gone a moment later. */
static void wait_for_threads(void)
{
    uint64_t end = tmk_clock_monotonic_ns() + closing_ns;
    for (uint32_t n; is_eval_over() && (n = atomic_load(&eval_job.n_threads)) > 0;) {
        uint64_t now = tmk_clock_monotonic_ns();
        if (now >= end || !tmk_futex_wait_while(&eval_job.n_threads, n, end - now))
            return;
    }
}

char *tmk_eval_claim(char *reason, size_t n)
{
    if (!is_own_job()) {
        memset((void *)&eval_job, 0, sizeof eval_job);
        eval_job.owner = getpid();
        pthread_mutex_init(&eval_job.lock, NULL);
    }
    wait_for_threads();
    if (is_eval_over() && atomic_load(&eval_job.n_threads) == 0)
        return eval_code;
    struct tmk_text text;
    uint64_t age_s = (tmk_clock_monotonic_ns() - eval_job.began_ns) / 1000000000u;
    tmk_text_init(&text, reason, n);
    tmk_text_add(&text, "an eval from %llu s ago %s; nothing was run, try again later",
                 (unsigned long long)age_s,
                 atomic_load(&eval_job.state) == CANCELLED
                     ? "still waits for the interpreter's lock (the GIL)"
                     : "has not come to its end, it is inside a call into C");
    return NULL;
}

static bool is_client_gone(int client)
{
    struct pollfd look = {.fd = client, .events = POLLRDHUP};
    return poll(&look, 1, 0) > 0 && (look.revents & (POLLHUP | POLLERR | POLLRDHUP));
}

/* Wait while the code is pending or runs; false when time is up or the client has gone. */
static bool wait_for_end(int client, uint64_t end_ns)
{
    for (uint32_t state; (state = atomic_load(&eval_job.state)) != ENDED;) {
        uint64_t now = tmk_clock_monotonic_ns();
        if (now >= end_ns || is_client_gone(client))
            return false;
        uint64_t left = end_ns - now;
        tmk_futex_wait_while(&eval_job.state, state, left < look_ns ? left : look_ns);
    }
    return true;
}

static void tell_time_up(const char *format, uint32_t timeout_ms)
{
    char seconds[32], text[320];
    struct tmk_text number, out;
    tmk_text_init(&number, seconds, sizeof seconds);
    tmk_text_u64(&number, timeout_ms / 1000);
    uint32_t part = timeout_ms % 1000;
    unsigned digits = 3;
    for (; part && part % 10 == 0; part /= 10)
        digits--;
    if (part) {
        tmk_text_char(&number, '.');
        tmk_text_padded(&number, part, digits);
    }
    tmk_text_init(&out, text, sizeof text);
    tmk_text_add(&out, format, seconds);
    tell_client(TMK_WIRE_FAIL, text);
}

/* Time is up, or nobody waits for the result. */
static void end_early(const struct tmk_eval_order *order)
{
    uint32_t pending = PENDING;
    if (atomic_compare_exchange_strong(&eval_job.state, &pending, CANCELLED)) {
        tell_time_up(order->on_main ? "nothing was run: the main thread was inside a call into C "
                                      "for %s s; try without --main"
                                    : "nothing was run: a call into C held the interpreter's lock "
                                      "(the GIL) for %s s",
                     order->timeout_ms);
        return;
    }
    uint64_t end = tmk_clock_monotonic_ns() + grace_ns;
    start_eval_thread(stop_main, STOPPER_STACK_BYTES);
    for (uint32_t state; (state = atomic_load(&eval_job.state)) != ENDED;) {
        uint64_t now = tmk_clock_monotonic_ns();
        if (now >= end || !tmk_futex_wait_while(&eval_job.state, state, end - now))
            break;
    }
    if (atomic_load(&eval_job.state) != ENDED)
        tell_time_up("the code did not end within %s s; it is inside a call into C and is stopped "
                     "when that returns, before which no other eval is taken",
                     order->timeout_ms);
    else if (atomic_load(&eval_job.is_stopped))
        tell_time_up("stopped: the code did not end within %s s", order->timeout_ms);
}

/* Nothing of the last eval is in use any more. */
static void begin_order(const struct tmk_eval_order *order, const struct tmk_python *py)
{
    eval_job.py = py;
    eval_job.on_main = order->on_main;
    eval_job.n_code = order->n_bytes;
    eval_job.began_ns = tmk_clock_monotonic_ns();
    eval_job.n_sent = 0;
    eval_job.timeout_class = NULL;
    eval_job.client = order->client;
    atomic_store(&eval_job.is_stopped, 0);
    atomic_store(&eval_job.state, PENDING);
}

static bool start_order(const struct tmk_eval_order *order)
{
    if (!order->on_main)
        return start_eval_thread(eval_main, EVAL_STACK_BYTES);
    if (atomic_exchange(&eval_job.is_queued, 1) ||
        eval_job.py->Py_AddPendingCall(eval_pending, NULL) == 0)
        return true;
    atomic_store(&eval_job.is_queued, 0);
    return false;
}

void tmk_eval_run(const struct tmk_eval_order *order)
{
    const char *reason = "";
    const struct tmk_python *py = tmk_python_find(&reason);
    if (!py) {
        (void)tmk_wire_send(order->client, TMK_WIRE_FAIL, reason, strlen(reason));
        return;
    }
    if (is_client_gone(order->client))
        return;
    begin_order(order, py);
    if (!start_order(order)) {
        atomic_store(&eval_job.state, CANCELLED);
        tell_client(TMK_WIRE_FAIL, order->on_main
                                       ? "nothing was run: the main thread has too many "
                                         "calls pending; try without --main"
                                       : "nothing was run: there is no thread to be had");
    } else if (!wait_for_end(order->client, eval_job.began_ns + order->timeout_ms * ms_ns)) {
        end_early(order);
    }
    pthread_mutex_lock(&eval_job.lock);
    eval_job.client = -1;
    pthread_mutex_unlock(&eval_job.lock);
}
