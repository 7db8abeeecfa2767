/* SPDX-License-Identifier: MIT */
/* tinytrain_math.c - a pool of threads, matrix products, attention, and the small loops.
 *
 * The pool knows one kind of job: n items, to be cut into as many shares as there are threads. Each
 * share runs with its own scratch block, allocated before it begins and freed when it ends, so that
 * a watched run shows blocks of several threads. The caller takes the first share and waits for the
 * rest; jobs do not overlap and do not nest.
 *
 * Invariant: an item writes only what no other item reads or writes. Hence no locks in the
 * arithmetic, and no sum whose order depends on the number of threads. */
#include "tinytrain_math.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "tinytrain_mem.h"

struct worker_job {
    const struct tt_place *place;
    void (*run)(const void *task, size_t begin, size_t end, float *scratch);
    const void *task;
    size_t n_items;
    size_t scratch_bytes;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t posted;
    pthread_cond_t finished;
    pthread_barrier_t ready;      /* only with more than one thread */
    const struct worker_job *job; /* borrowed from the thread that waits in job_run() */
    uint64_t n_posted;            /* tells a worker a new job from the one it has done */
    size_t n_busy;
    size_t n_threads; /* the caller's included */
    bool is_stopping;
    pthread_t threads[TT_THREADS_MAX];
} pool = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .posted = PTHREAD_COND_INITIALIZER,
    .finished = PTHREAD_COND_INITIALIZER,
    .n_threads = 1,
};

/* No share begins before each has its scratch: then neither the peak nor running out of memory
 * depends on which thread is faster. */
static void share_run(const struct worker_job *job, size_t share)
{
    const size_t begin = job->n_items * share / pool.n_threads;
    const size_t end = job->n_items * (share + 1) / pool.n_threads;
    float *scratch = NULL;
    if (begin < end)
        scratch = tt_new(TIDEMARK_TEMPORARY, job->scratch_bytes, job->place->module, "scratch");
    if (pool.n_threads > 1)
        pthread_barrier_wait(&pool.ready);
    if (begin < end)
        job->run(job->task, begin, end, scratch);
    tt_free(scratch);
}

/* Worker threads open the ranges that the posting thread is in, for as long as their share takes.
 */
static void share_run_in_place(const struct worker_job *job, size_t share)
{
    tidemark_push(TIDEMARK_STAGE, job->place->stage);
    tidemark_push(TIDEMARK_MODULE, job->place->module);
    share_run(job, share);
    tidemark_pop(TIDEMARK_MODULE);
    tidemark_pop(TIDEMARK_STAGE);
}

static void *worker_main(void *argument)
{
    const size_t share = (size_t)(uintptr_t)argument;
    uint64_t n_done = 0;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (pool.n_posted == n_done && !pool.is_stopping)
            pthread_cond_wait(&pool.posted, &pool.lock);
        if (pool.is_stopping)
            break;
        n_done = pool.n_posted;
        const struct worker_job *job = pool.job;
        pthread_mutex_unlock(&pool.lock);
        share_run_in_place(job, share);
        pthread_mutex_lock(&pool.lock);
        if (--pool.n_busy == 0)
            pthread_cond_signal(&pool.finished);
    }
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

static void job_run(const struct worker_job *job)
{
    pthread_mutex_lock(&pool.lock);
    pool.job = job;
    pool.n_posted++;
    pool.n_busy = pool.n_threads - 1;
    pthread_cond_broadcast(&pool.posted);
    pthread_mutex_unlock(&pool.lock);

    share_run(job, 0);

    pthread_mutex_lock(&pool.lock);
    while (pool.n_busy > 0)
        pthread_cond_wait(&pool.finished, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

int tt_pool_start(size_t n_threads)
{
    if (n_threads < 2)
        return 0;
    int rc = pthread_barrier_init(&pool.ready, NULL, (unsigned)n_threads);
    if (rc != 0)
        return rc;
    pool.n_posted = 0; /* workers count from 0: what was done before them is not theirs */
    for (size_t share = 1; share < n_threads; share++) {
        rc = pthread_create(&pool.threads[share], NULL, worker_main, (void *)(uintptr_t)share);
        if (rc != 0) {
            tt_pool_stop();
            return rc;
        }
        pool.n_threads++;
    }
    return 0;
}

void tt_pool_stop(void)
{
    pthread_mutex_lock(&pool.lock);
    pool.is_stopping = true;
    pthread_cond_broadcast(&pool.posted);
    pthread_mutex_unlock(&pool.lock);
    for (size_t i = 1; i < pool.n_threads; i++)
        pthread_join(pool.threads[i], NULL);
    if (pool.n_threads > 1)
        pthread_barrier_destroy(&pool.ready);
    pool.n_threads = 1;
    pool.is_stopping = false;
}

/* A tile of b: TILE_INNER x TILE_COLS values, copied so that they lie together whatever the strides
 * of b are. It is what the scratch of a matmul holds. A row of a tile is four vectors. */
enum { TILE_COLS = 16, TILE_INNER = 128, N_LANES = 4 };
typedef float lanes __attribute__((vector_size(N_LANES * sizeof(float))));

static void tile_pack(const struct tt_matmul *m, size_t k0, size_t n_inner, size_t j0,
                      size_t n_cols, float *tile)
{
    for (size_t k = 0; k < n_inner; k++) {
        const float *from = m->b + (k0 + k) * m->b_row + j0 * m->b_col;
        for (size_t j = 0; j < n_cols; j++)
            tile[k * TILE_COLS + j] = from[j * m->b_col];
        for (size_t j = n_cols; j < TILE_COLS; j++)
            tile[k * TILE_COLS + j] = 0;
    }
}

/* sums += one row of a times one tile. Written out, so that the sums stay in registers. */
static void tile_multiply(const float *a, size_t a_col, size_t n_inner, const float *tile,
                          float sums[TILE_COLS])
{
    lanes sum[TILE_COLS / N_LANES], b[TILE_COLS / N_LANES];
    memcpy(sum, sums, sizeof(sum));
    for (size_t k = 0; k < n_inner; k++) {
        memcpy(b, tile + k * TILE_COLS, sizeof(b));
        const float factor = a[k * a_col];
        sum[0] += factor * b[0];
        sum[1] += factor * b[1];
        sum[2] += factor * b[2];
        sum[3] += factor * b[3];
    }
    memcpy(sums, sum, sizeof(sum));
}

/* Rows [begin, end) of c += rows of a times one tile of b; the first tile starts from the bias. */
static void tile_apply(const struct tt_matmul *m, size_t begin, size_t end, size_t k0, size_t j0,
                       float *tile)
{
    const size_t n_inner = m->n_inner - k0 < TILE_INNER ? m->n_inner - k0 : TILE_INNER;
    const size_t n_cols = m->n_cols - j0 < TILE_COLS ? m->n_cols - j0 : TILE_COLS;
    tile_pack(m, k0, n_inner, j0, n_cols, tile);
    for (size_t i = begin; i < end; i++) {
        float sums[TILE_COLS] = {0};
        float *c = m->c + i * m->n_cols + j0;
        if (k0 > 0)
            memcpy(sums, c, n_cols * sizeof(float));
        else if (m->bias)
            memcpy(sums, m->bias + j0, n_cols * sizeof(float));
        tile_multiply(m->a + i * m->a_row + k0 * m->a_col, m->a_col, n_inner, tile, sums);
        memcpy(c, sums, n_cols * sizeof(float));
    }
}

static void matmul_rows(const void *task, size_t begin, size_t end, float *scratch)
{
    const struct tt_matmul *m = task;
    for (size_t j0 = 0; j0 < m->n_cols; j0 += TILE_COLS)
        for (size_t k0 = 0; k0 < m->n_inner; k0 += TILE_INNER)
            tile_apply(m, begin, end, k0, j0, scratch);
}

void tt_matmul(const struct tt_matmul *m)
{
    job_run(&(const struct worker_job){
        .place = &m->place,
        .run = matmul_rows,
        .task = m,
        .n_items = m->n_rows,
        .scratch_bytes = sizeof(float) * TILE_COLS * TILE_INNER,
    });
}

/* One head of one text of the batch: the item that attention shares out. */
struct head_view {
    size_t n_seq, n_dim;
    size_t stride;       /* floats from one position to the next in q, k, v */
    size_t out_stride;   /* the same in out */
    size_t q, k, v, out; /* where they begin */
    size_t probs;
    float scale;
};

static struct head_view head_at(const struct tt_attention *a, size_t item)
{
    const size_t text = item / a->n_heads;
    const size_t n_dim = a->n_dim / a->n_heads;
    const size_t column = item % a->n_heads * n_dim;
    const size_t first = text * a->n_seq * 3 * a->n_dim + column;
    return (struct head_view){
        .n_seq = a->n_seq,
        .n_dim = n_dim,
        .stride = 3 * a->n_dim,
        .out_stride = a->n_dim,
        .q = first,
        .k = first + a->n_dim,
        .v = first + 2 * a->n_dim,
        .out = text * a->n_seq * a->n_dim + column,
        .probs = item * a->n_seq * a->n_seq,
        .scale = 1.0f / sqrtf((float)n_dim),
    };
}

/* to[d][t] = from[t][d]: keys (or values) laid out so that the loop over positions is the inner. */
static void transpose(const struct head_view *h, const float *from, float *to)
{
    for (size_t t = 0; t < h->n_seq; t++)
        for (size_t d = 0; d < h->n_dim; d++)
            to[d * h->n_seq + t] = from[t * h->stride + d];
}

/* row[s] = scale * <vector, column s>, for the first n columns */
static void dot_columns(const struct head_view *h, const float *vector, const float *columns,
                        float scale, size_t n, float *row)
{
    memset(row, 0, n * sizeof(float));
    for (size_t d = 0; d < h->n_dim; d++) {
        const float factor = scale * vector[d];
        for (size_t s = 0; s < n; s++)
            row[s] += factor * columns[d * h->n_seq + s];
    }
}

static void add_scaled(size_t n, float factor, const float *from, float *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] += factor * from[i];
}

/* The softmax of at least one number. */
static float softmax(size_t n, const float *in, float *out)
{
    float largest = in[0];
    for (size_t i = 1; i < n; i++)
        largest = in[i] > largest ? in[i] : largest;
    float sum = out[0] = expf(in[0] - largest);
    for (size_t i = 1; i < n; i++)
        sum += out[i] = expf(in[i] - largest);
    for (size_t i = 0; i < n; i++)
        out[i] /= sum;
    return largest + logf(sum);
}

static void attention_forward_heads(const void *task, size_t begin, size_t end, float *scratch)
{
    const struct tt_attention *a = task;
    for (size_t item = begin; item < end; item++) {
        const struct head_view h = head_at(a, item);
        transpose(&h, a->qkv + h.k, scratch);
        for (size_t t = 0; t < h.n_seq; t++) {
            float *row = a->probs + h.probs + t * h.n_seq;
            float *out = a->out + h.out + t * h.out_stride;
            dot_columns(&h, a->qkv + h.q + t * h.stride, scratch, h.scale, t + 1, row);
            softmax(t + 1, row, row);
            memset(row + t + 1, 0, (h.n_seq - t - 1) * sizeof(float));
            memset(out, 0, h.n_dim * sizeof(float));
            for (size_t s = 0; s <= t; s++)
                add_scaled(h.n_dim, row[s], a->qkv + h.v + s * h.stride, out);
        }
    }
}

void tt_attention_forward(const struct tt_attention *a)
{
    job_run(&(const struct worker_job){
        .place = &a->place,
        .run = attention_forward_heads,
        .task = a,
        .n_items = a->n_batch * a->n_heads,
        .scratch_bytes = sizeof(float) * a->n_seq * (a->n_dim / a->n_heads),
    });
}

/* Turn the gradient of n probabilities into the gradient of the scaled scores, in place. */
static void softmax_backward(size_t n, const float *probs, float scale, float *d)
{
    float mean = 0;
    for (size_t s = 0; s < n; s++)
        mean += probs[s] * d[s];
    for (size_t s = 0; s < n; s++)
        d[s] = scale * probs[s] * (d[s] - mean);
}

static void head_clear(const struct head_view *h, float *d_qkv)
{
    for (size_t t = 0; t < h->n_seq; t++) {
        memset(d_qkv + h->q + t * h->stride, 0, h->n_dim * sizeof(float));
        memset(d_qkv + h->k + t * h->stride, 0, h->n_dim * sizeof(float));
        memset(d_qkv + h->v + t * h->stride, 0, h->n_dim * sizeof(float));
    }
}

static void attention_backward_heads(const void *task, size_t begin, size_t end, float *scratch)
{
    const struct tt_attention *a = task;
    for (size_t item = begin; item < end; item++) {
        const struct head_view h = head_at(a, item);
        float *d_row = scratch + h.n_dim * h.n_seq;
        transpose(&h, a->qkv + h.v, scratch);
        head_clear(&h, a->d_qkv);
        for (size_t t = 0; t < h.n_seq; t++) {
            const float *row = a->probs + h.probs + t * h.n_seq;
            const float *d_out = a->d_out + h.out + t * h.out_stride;
            const size_t here = t * h.stride;
            dot_columns(&h, d_out, scratch, 1.0f, t + 1, d_row);
            softmax_backward(t + 1, row, h.scale, d_row);
            for (size_t s = 0; s <= t; s++) {
                const size_t there = s * h.stride;
                add_scaled(h.n_dim, row[s], d_out, a->d_qkv + h.v + there);
                add_scaled(h.n_dim, d_row[s], a->qkv + h.k + there, a->d_qkv + h.q + here);
                add_scaled(h.n_dim, d_row[s], a->qkv + h.q + here, a->d_qkv + h.k + there);
            }
        }
    }
}

void tt_attention_backward(const struct tt_attention *a)
{
    job_run(&(const struct worker_job){
        .place = &a->place,
        .run = attention_backward_heads,
        .task = a,
        .n_items = a->n_batch * a->n_heads,
        .scratch_bytes = sizeof(float) * a->n_seq * (a->n_dim / a->n_heads + 1),
    });
}

void tt_norm_forward(struct tt_norm_shape s, const float *in, const float *weight,
                     const float *bias, float *out, float *stats)
{
    const float n = (float)s.n_dim;
    for (size_t i = 0; i < s.n_rows; i++, in += s.n_dim, out += s.n_dim, stats += 2) {
        float sum = 0, square_sum = 0;
        for (size_t j = 0; j < s.n_dim; j++)
            sum += in[j];
        const float mean = sum / n;
        for (size_t j = 0; j < s.n_dim; j++)
            square_sum += (in[j] - mean) * (in[j] - mean);
        const float scale = 1.0f / sqrtf(square_sum / n + 1e-5f);
        for (size_t j = 0; j < s.n_dim; j++)
            out[j] = (in[j] - mean) * scale * weight[j] + bias[j];
        stats[0] = mean;
        stats[1] = scale;
    }
}

/* With x the normalised input and g = d_out * weight: d_in = scale * (g - mean(g) - x mean(g x)).
 */
void tt_norm_backward(struct tt_norm_shape s, const float *in, const float *stats,
                      const float *weight, const float *d_out, float *d_in, float *d_weight,
                      float *d_bias)
{
    const float n = (float)s.n_dim;
    memset(d_weight, 0, s.n_dim * sizeof(float));
    memset(d_bias, 0, s.n_dim * sizeof(float));
    for (size_t i = 0; i < s.n_rows; i++, in += s.n_dim, d_in += s.n_dim, d_out += s.n_dim) {
        const float mean = stats[2 * i], scale = stats[2 * i + 1];
        float g_sum = 0, gx_sum = 0;
        for (size_t j = 0; j < s.n_dim; j++) {
            const float x = (in[j] - mean) * scale;
            d_weight[j] += d_out[j] * x;
            d_bias[j] += d_out[j];
            g_sum += d_out[j] * weight[j];
            gx_sum += d_out[j] * weight[j] * x;
        }
        for (size_t j = 0; j < s.n_dim; j++) {
            const float x = (in[j] - mean) * scale;
            d_in[j] += scale * (d_out[j] * weight[j] - g_sum / n - x * gx_sum / n);
        }
    }
}

/* GELU in its tanh form: x/2 (1 + tanh(c (x + a x^3))), c = sqrt(2/pi). */
static const float gelu_c = 0.7978845608f, gelu_a = 0.044715f;

void tt_gelu_forward(size_t n, const float *in, float *out)
{
    for (size_t i = 0; i < n; i++) {
        const float x = in[i];
        out[i] = 0.5f * x * (1.0f + tanhf(gelu_c * (x + gelu_a * x * x * x)));
    }
}

void tt_gelu_backward(size_t n, const float *in, float *d)
{
    for (size_t i = 0; i < n; i++) {
        const float x = in[i];
        const float y = tanhf(gelu_c * (x + gelu_a * x * x * x));
        const float slope = gelu_c * (1.0f + 3.0f * gelu_a * x * x);
        d[i] *= 0.5f * (1.0f + y) + 0.5f * x * (1.0f - y * y) * slope;
    }
}

double tt_loss_forward(size_t n_rows, size_t n_classes, const float *logits, const int32_t *targets,
                       float *probs)
{
    double sum = 0;
    for (size_t i = 0; i < n_rows; i++, logits += n_classes, probs += n_classes)
        sum += (double)(softmax(n_classes, logits, probs) - logits[targets[i]]);
    return sum / (double)n_rows;
}

void tt_loss_backward(size_t n_rows, size_t n_classes, const float *probs, const int32_t *targets,
                      float *d_logits)
{
    for (size_t i = 0; i < n_rows; i++) {
        float *row = d_logits + i * n_classes;
        for (size_t j = 0; j < n_classes; j++)
            row[j] = probs[i * n_classes + j] / (float)n_rows;
        row[targets[i]] -= 1.0f / (float)n_rows;
    }
}

void tt_column_sums(size_t n_rows, size_t n_cols, const float *in, float *sums)
{
    memset(sums, 0, n_cols * sizeof(float));
    for (size_t i = 0; i < n_rows; i++)
        tt_add(n_cols, in + i * n_cols, sums);
}

void tt_add(size_t n, const float *from, float *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}
