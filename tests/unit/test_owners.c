/* SPDX-License-Identifier: MIT */
/* Two steps of a training as torch reports them, made by hand: whose each block is, in every table.
 *
 * The model has a linear layer with an adapter, a norm and a head tied to the first layer; its
 * blocks are on cuda:0, made by the main thread (1) and in backward by autograd's (2). */
#include "maker.h"
#include "model/run.h"
#include "passes/group.h"
#include "sql_fixture.h"
#include "tidemark/tidemark.h"
#include "trace/defs.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/packer.h"

#include "passes/peak.h"

enum {
    M_NET = 1,
    M_FC,
    M_LORA,
    M_NORM,
    M_HEAD,
    M_ADAMW,
    M_LOSS,
    C_NET,
    C_LINEAR,
    C_NORM,
    C_LOSS,
    P_FC,
    P_LORA,
    P_NORM,
    P_HEAD,
    P_MEAN,
    P_SCALE,
    T_STATE,
    T_INPUT,
    T_HIDDEN,
    ST_FORWARD,
    ST_BACKWARD,
    ST_OPTIMIZER,
    ST_EVAL,
    ST_OWN,
    F_MAIN,
    F_MODULE,
    F_LOADER,
    F_OPTIM,
    F_OURS,
    FN_MAIN,
    FN_TO,
    FN_NEXT,
    FN_INIT,
    FN_FORWARD,
    N_TEXTS
};

static const char *const texts[N_TEXTS] = {
    [M_NET] = "Net",
    [M_FC] = "body.mlp.fc",
    [M_LORA] = "body.mlp.fc.lora_A",
    [M_NORM] = "norm",
    [M_HEAD] = "lm_head",
    [M_ADAMW] = "AdamW",
    [M_LOSS] = "CrossEntropyLoss",
    [C_NET] = "__main__.Net",
    [C_LINEAR] = "torch.nn.modules.linear.Linear",
    [C_NORM] = "torch.nn.modules.normalization.LayerNorm",
    [C_LOSS] = "torch.nn.modules.loss.CrossEntropyLoss",
    [P_FC] = "body.mlp.fc.weight",
    [P_LORA] = "body.mlp.fc.lora_A.weight",
    [P_NORM] = "norm.weight",
    [P_HEAD] = "lm_head.weight",
    [P_MEAN] = "norm.mean",
    [P_SCALE] = "scale",
    [T_STATE] = "body.mlp.fc.lora_A.weight.exp_avg",
    [T_INPUT] = "input_ids",
    [T_HIDDEN] = "input[0]",
    [ST_FORWARD] = "forward",
    [ST_BACKWARD] = "backward",
    [ST_OPTIMIZER] = "optimizer",
    [ST_EVAL] = "eval",
    [ST_OWN] = "warmup",
    [F_MAIN] = "/home/me/train.py",
    [F_MODULE] = "/usr/lib/python3/dist-packages/torch/nn/modules/module.py",
    [F_LOADER] = "/usr/lib/python3/dist-packages/torch/utils/data/dataloader.py",
    [F_OPTIM] = "/usr/lib/python3/dist-packages/torch/optim/adamw.py",
    [F_OURS] = "<tidemark>",
    [FN_MAIN] = "main",
    [FN_TO] = "Module.to",
    [FN_NEXT] = "_BaseDataLoaderIter.__next__",
    [FN_INIT] = "AdamW.__init__",
    [FN_FORWARD] = "Module.forward",
};

enum { STACK_MAIN = 1, STACK_LOAD, STACK_DATA, STACK_OPTIM, STACK_BOTH, STACK_FORWARD, STACK_OURS };

static void define_parameter(struct maker *m, uint32_t id, uint32_t name, uint32_t flags,
                             uint64_t address, uint64_t size, const char *shape)
{
    struct {
        struct tmk_parameter_head head;
        char shape[32];
    } text = {{.address = address, .size_bytes = size, .name = name}, ""};
    strcpy(text.shape, shape);
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_DEF_PARAMETER,
                                    .id = id,
                                    .a = flags << 16 | CUDA0,
                                    .text = (const uint8_t *)&text,
                                    .text_bytes = (uint32_t)(sizeof text.head + strlen(shape))});
}

static void define_class(struct maker *m, uint32_t name, uint32_t class)
{
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_DEF_TORCH_MODULE, .id = name, .a = class});
}

static void define_model(struct maker *m)
{
    const uint32_t grad = TMK_PARAMETER_REQUIRES_GRAD, trained = TMK_PARAMETER_OPTIMIZED;
    define_class(m, M_NET, C_NORM); /* the last counts */
    define_class(m, M_NET, C_NET);
    define_class(m, M_FC, C_LINEAR);
    define_class(m, M_LORA, C_LINEAR);
    define_class(m, M_NORM, C_NORM);
    define_class(m, M_HEAD, C_LINEAR);
    define_class(m, M_LOSS, C_LOSS);
    define_parameter(m, 1, P_FC, 0, 0x9000, 400, "float32 [10, 10]"); /* before it was moved */
    define_parameter(m, 2, P_LORA, grad | trained, 0x2000, 40, "float32 [1, 10]");
    define_parameter(m, 3, P_NORM, grad, 0x3000, 20, "float16 [10]");
    define_parameter(m, 4, P_FC, 0, 0x1000, 400, "float32 [10, 10]");
    define_parameter(m, 5, P_HEAD, 0, 0x1000, 400, "float32 [10, 10]"); /* tied */
    define_parameter(m, 6, P_MEAN, TMK_PARAMETER_IS_BUFFER, 0x4000, 8, "int64 []");
    define_parameter(m, 7, P_SCALE, grad, 0xa000, 4, "float32 []"); /* of the model itself */
}

static void define_stacks(struct maker *m)
{
    static const struct {
        uint32_t file, function;
    } frames[] = {{F_MAIN, FN_MAIN},  {F_MODULE, FN_TO},      {F_LOADER, FN_NEXT},
                  {F_OPTIM, FN_INIT}, {F_MODULE, FN_FORWARD}, {F_OURS, FN_MAIN}};
    for (uint32_t i = 0; i < 6; i++)
        maker_frame(m, i + 1, frames[i].file, frames[i].function, i + 1);
    maker_stack(m, STACK_MAIN, (uint32_t[]){1}, 1);
    maker_stack(m, STACK_LOAD, (uint32_t[]){2, 2, 1}, 3);
    maker_stack(m, STACK_DATA, (uint32_t[]){3, 1}, 2);
    maker_stack(m, STACK_OPTIM, (uint32_t[]){4, 1}, 2);
    maker_stack(m, STACK_BOTH, (uint32_t[]){2, 4, 1}, 3); /* the outermost decides */
    maker_stack(m, STACK_FORWARD, (uint32_t[]){5, 1}, 2); /* of no stage */
    maker_stack(m, STACK_OURS, (uint32_t[]){5, 6, 1}, 3);
}

/* A block and, unless it is 0, its tag. */
static void block(struct maker *m, uint64_t address, uint64_t size, uint32_t stack,
                  unsigned category, uint32_t name)
{
    m->ns += 10;
    maker_alloc(m, CUDA0, address, size, stack);
    if (category)
        maker_tag(m, CUDA0, address, category, name);
}

static void make_before(struct maker *m)
{
    block(m, 0x1000, 512, STACK_LOAD, TIDEMARK_PARAMETER, P_FC);   /* 1 */
    block(m, 0x2000, 513, STACK_LOAD, TIDEMARK_PARAMETER, P_LORA); /* 2 */
    block(m, 0x3000, 514, STACK_LOAD, TIDEMARK_PARAMETER, P_NORM); /* 3 */
    block(m, 0x4000, 515, STACK_MAIN, TIDEMARK_BUFFER, P_MEAN);    /* 4: made by the user's lines */
    block(m, 0x5000, 100, STACK_OPTIM, 0, 0);                      /* 5 */
    block(m, 0x5100, 101, STACK_BOTH, 0, 0);                       /* 6 */
    block(m, 0x5200, 102, STACK_MAIN, 0, 0);                       /* 7 */
    block(m, 0x5300, 103, STACK_FORWARD, 0, 0);                    /* 8 */
}

static void make_forward(struct maker *m)
{
    block(m, 0x6000, 64, STACK_DATA, TIDEMARK_INPUT, T_INPUT); /* 9 */
    block(m, 0x6100, 65, STACK_DATA, 0, 0);                    /* 10: freed in backward */
    block(m, 0x6200, 66, STACK_DATA, 0, 0);                    /* 11: never */
    maker_push(m, TIDEMARK_STAGE, ST_FORWARD);
    maker_push(m, TIDEMARK_MODULE, M_NET);
    maker_push(m, TIDEMARK_MODULE, M_FC);
    block(m, 0x7000, 200, STACK_FORWARD, 0, 0); /* 12 */
    block(m, 0x7100, 201, STACK_FORWARD, 0, 0); /* 13: a temporary */
    maker_push(m, TIDEMARK_MODULE, M_LORA);
    block(m, 0x7200, 202, STACK_FORWARD, TIDEMARK_INPUT, T_HIDDEN); /* 14: the hint is wrong */
    maker_pop(m, TIDEMARK_MODULE);
    maker_free(m, CUDA0, 0x7100);
    m->ns += 10;
    maker_pop(m, TIDEMARK_MODULE);
    maker_push(m, TIDEMARK_MODULE, M_NORM);
    block(m, 0x7300, 203, STACK_FORWARD, 0, 0); /* 15 */
    maker_pop(m, TIDEMARK_MODULE);
    maker_pop(m, TIDEMARK_MODULE);
    maker_push(m, TIDEMARK_MODULE, M_LOSS);
    block(m, 0x7400, 204, STACK_MAIN, 0, 0); /* 16 */
    maker_pop(m, TIDEMARK_MODULE);
    maker_pop(m, TIDEMARK_STAGE);
}

/* Both threads are in it; the worker's range is closed for it. */
static void make_backward(struct maker *m)
{
    m->ns += 10;
    maker_push(m, TIDEMARK_STAGE, ST_BACKWARD);
    m->thread = 2;
    maker_push(m, TIDEMARK_STAGE, ST_BACKWARD);
    maker_push(m, TIDEMARK_MODULE, M_NORM);
    block(m, 0x8000, 300, 0, 0, 0); /* 17: a detail, freed by the other thread */
    maker_pop(m, TIDEMARK_MODULE);
    maker_push(m, TIDEMARK_MODULE, M_FC);
    block(m, 0x8100, 301, 0, 0, 0); /* 18: the gradient, tagged when backward has ended */
    maker_free(m, CUDA0, 0x7000);
    maker_free(m, CUDA0, 0x6100);
    m->ns += 5;
    maker_pop(m, TIDEMARK_MODULE);
    maker_pop(m, TIDEMARK_STAGE);
    m->thread = 1;
    maker_free(m, CUDA0, 0x8000);
    maker_free(m, CUDA0, 0x7200);
    maker_free(m, CUDA0, 0x7300);
    maker_free(m, CUDA0, 0x7400);
    maker_pop(m, TIDEMARK_STAGE);
    maker_tag(m, CUDA0, 0x8100, TIDEMARK_GRADIENT, P_LORA);
}

static void make_optimizer(struct maker *m)
{
    maker_push(m, TIDEMARK_STAGE, ST_OPTIMIZER);
    maker_push(m, TIDEMARK_MODULE, M_ADAMW);
    block(m, 0x8200, 400, STACK_MAIN, 0, 0); /* 19 */
    block(m, 0x8300, 401, STACK_MAIN, 0, 0); /* 20: a temporary */
    maker_free(m, CUDA0, 0x8300);
    maker_pop(m, TIDEMARK_MODULE);
    maker_pop(m, TIDEMARK_STAGE);
    maker_tag(m, CUDA0, 0x8200, TIDEMARK_OPTIMIZER_STATE, T_STATE);
}

static void make_training(struct maker *m)
{
    for (uint32_t i = 1; i < N_TEXTS; i++)
        maker_string(m, i, texts[i]);
    define_thread(m, 1, 1001);
    define_thread(m, 2, 1002);
    define_model(m);
    define_stacks(m);
    make_before(m);
    maker_step(m, 0);
    make_forward(m);
    make_backward(m);
    m->ns += 10;
    maker_push(m, TIDEMARK_STAGE, ST_BACKWARD); /* accumulation: a second one */
    maker_pop(m, TIDEMARK_STAGE);
    make_optimizer(m);
    m->ns += 10;
    maker_step(m, 1);
    maker_push(m, TIDEMARK_STAGE, ST_EVAL);
    maker_push(m, TIDEMARK_MODULE, M_HEAD);
    block(m, 0x8400, 500, STACK_FORWARD, 0, 0); /* 21 */
    maker_pop(m, TIDEMARK_MODULE);
    maker_pop(m, TIDEMARK_STAGE);
    maker_push(m, TIDEMARK_STAGE, ST_OWN);
    maker_push(m, TIDEMARK_MODULE, M_HEAD);
    block(m, 0x8500, 501, STACK_FORWARD, 0, 0); /* 22 */
    maker_pop(m, TIDEMARK_MODULE);
    maker_pop(m, TIDEMARK_STAGE);
}

static void open_training(struct fixture *f)
{
    struct maker m;
    *f = (struct fixture){0};
    make_folder(f->folder);
    open_trace(&m, f->folder, "hand", hand_info, 0);
    make_training(&m);
    close_trace(f, &m);
    open_fixture(f);
}

static void test_blocks(void **state)
{
    (void)state;
    struct fixture f;
    open_training(&f);
    expect(f.sql, "SELECT id, step, stage, module, component, category, tensor FROM allocations",
           "1|-|model_load|body.mlp.fc|mlp|parameter|body.mlp.fc.weight\n"
           "2|-|model_load|body.mlp.fc.lora_A|lora|parameter|body.mlp.fc.lora_A.weight\n"
           "3|-|model_load|norm|normalization|parameter|norm.weight\n"
           "4|-|model_load|norm|normalization|buffer|norm.mean\n"
           "5|-|optimizer_setup|-|other|unknown|-\n"
           "6|-|optimizer_setup|-|other|unknown|-\n"
           "7|-|other|-|other|unknown|-\n"
           "8|-|other|-|other|unknown|-\n"
           "9|0|data|-|other|input|input_ids\n"
           "10|0|data|-|other|input|-\n"
           "11|0|data|-|other|input|-\n"
           "12|0|forward|body.mlp.fc|mlp|activation|-\n"
           "13|0|forward|body.mlp.fc|mlp|temporary|-\n"
           "14|0|forward|body.mlp.fc.lora_A|lora|activation|-\n"
           "15|0|forward|norm|normalization|activation|-\n"
           "16|0|forward|CrossEntropyLoss|other|activation|-\n"
           "17|0|backward|norm|normalization|autograd_detail|-\n"
           "18|0|backward|body.mlp.fc|lora|gradient|body.mlp.fc.lora_A.weight\n"
           "19|0|optimizer|AdamW|lora|optimizer_state|body.mlp.fc.lora_A.weight.exp_avg\n"
           "20|0|optimizer|AdamW|other|temporary|-\n"
           "21|1|eval|lm_head|head|activation|-\n"
           "22|1|warmup|lm_head|head|other|-\n");
    expect(f.sql, "SELECT tensor, category, size, module FROM tensors ORDER BY size",
           "input_ids|input|64|-\n"
           "body.mlp.fc.lora_A.weight|gradient|301|body.mlp.fc\n"
           "body.mlp.fc.lora_A.weight.exp_avg|optimizer_state|400|AdamW\n"
           "body.mlp.fc.weight|parameter|512|body.mlp.fc\n"
           "body.mlp.fc.lora_A.weight|parameter|513|body.mlp.fc.lora_A\n"
           "norm.weight|parameter|514|norm\n"
           "norm.mean|buffer|515|norm\n");
    close_fixture(&f);
}

static void test_model(void **state)
{
    (void)state;
    struct fixture f;
    open_training(&f);
    expect(f.sql,
           "SELECT id, name, module, component, kind, dtype, shape, device, bytes, requires_grad,"
           " trained, address, block_id, pid, rank FROM parameters",
           "4|body.mlp.fc.weight|body.mlp.fc|mlp|parameter|float32|[10, 10]|cuda:0|400|0|0|4096|1"
           "|42|3\n"
           "2|body.mlp.fc.lora_A.weight|body.mlp.fc.lora_A|lora|parameter|float32|[1, 10]|cuda:0|40"
           "|1|1|8192|2|42|3\n"
           "3|norm.weight|norm|normalization|parameter|float16|[10]|cuda:0|20|1|0|12288|3|42|3\n"
           "5|lm_head.weight|lm_head|head|parameter|float32|[10, 10]|cuda:0|400|0|0|4096|1|42|3\n"
           "6|norm.mean|norm|normalization|buffer|int64|[]|cuda:0|8|0|0|16384|4|42|3\n"
           "7|scale|Net|other|parameter|float32|[]|cuda:0|4|1|0|40960|-|42|3\n");
    expect(f.sql,
           "SELECT module, class, component, calls, parameter_bytes, duration_ns, forward_ns,"
           " backward_ns, bytes, forward_bytes, backward_bytes FROM modules ORDER BY module",
           "AdamW|-|other|1|0|20|0|0|801|0|0\n"
           "CrossEntropyLoss|torch.nn.modules.loss.CrossEntropyLoss|other|1|0|10|10|0|204|204|0\n"
           "Net|__main__.Net|other|1|4|50|50|0|0|0|0\n"
           "body.mlp.fc|torch.nn.modules.linear.Linear|mlp|2|400|55|40|15|702|401|301\n"
           "body.mlp.fc.lora_A|torch.nn.modules.linear.Linear|lora|1|40|10|10|0|202|202|0\n"
           "lm_head|torch.nn.modules.linear.Linear|head|2|400|20|20|0|1001|1001|0\n"
           "norm|torch.nn.modules.normalization.LayerNorm|normalization|2|20|20|10|10|503|203"
           "|300\n");
    close_fixture(&f);
}

static void test_ranges(void **state)
{
    (void)state;
    struct fixture f;
    open_training(&f);
    expect(f.sql, "SELECT step, micro_steps FROM steps", "-|0\n0|2\n1|0\n");
    expect(f.sql, "SELECT name, step, thread FROM ranges WHERE kind = 'stage'",
           "forward|0|1001\nbackward|0|1001\nbackward|0|1002\nbackward|0|1001\noptimizer|0|1001\n"
           "eval|1|1001\nwarmup|1|1001\n");
    expect(f.sql, "SELECT step, seq, module, stage FROM python.torch_trace",
           "0|0|Net|pre forward\n0|1|body.mlp.fc|pre forward\n"
           "0|2|body.mlp.fc.lora_A|pre forward\n0|3|body.mlp.fc.lora_A|post forward\n"
           "0|4|body.mlp.fc|post forward\n0|5|norm|pre forward\n0|6|norm|post forward\n"
           "0|7|Net|post forward\n0|8|CrossEntropyLoss|pre forward\n"
           "0|9|CrossEntropyLoss|post forward\n0|10|norm|pre backward\n0|11|norm|post backward\n"
           "0|12|body.mlp.fc|pre backward\n0|13|body.mlp.fc|post backward\n"
           "0|14|AdamW|pre step\n0|15|AdamW|post step\n1|0|lm_head|pre forward\n"
           "1|1|lm_head|post forward\n1|2|lm_head|pre forward\n1|3|lm_head|post forward\n");
    close_fixture(&f);
}

/* The line that is shown is the user's: neither torch's nor ours. */
static void test_site(void **state)
{
    (void)state;
    struct fixture f;
    struct tmk_frame site;
    open_training(&f);
    assert_true(tmk_stack_site(tmk_run_process(f.run, 0), STACK_OURS, &site));
    assert_string_equal(site.file, "/home/me/train.py");
    close_fixture(&f);
}

/* The same by groups: at the end of step 0's backward, where its peak is. */
static void check_group(struct tmk_peak *k, enum tmk_by by, const char *expected)
{
    const struct tmk_peak_row *rows;
    uint64_t n;
    char got[2000] = "";
    assert_int_equal(tmk_peak_group(k, by, &rows, &n, NULL), 0);
    for (uint64_t i = 0; i < n; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s %u/%u\n",
                 rows[i].key ? rows[i].key : "-", (unsigned)rows[i].bytes,
                 (unsigned)rows[i].n_blocks);
    assert_string_equal(got, expected);
}

static void test_groups(void **state)
{
    (void)state;
    struct fixture f;
    open_training(&f);
    struct tmk_peak *k = maker_peak(
        f.run, (struct tmk_moment){.kind = TMK_MOMENT_STEP, .step = 0, .any_device = true});
    assert_int_equal(tmk_peak_bytes(k), 4065);
    check_group(k, TMK_BY_CATEGORY,
                "parameter 1539/3\nactivation 809/4\nbuffer 515/1\nunknown 406/4\ngradient 301/1\n"
                "autograd_detail 300/1\ninput 195/3\n");
    check_group(k, TMK_BY_COMPONENT, "normalization 1532/4\nlora 1016/3\nother 805/8\nmlp 712/2\n");
    check_group(k, TMK_BY_MODULE,
                "norm 1532/4\nbody.mlp.fc 1013/3\nbody.mlp.fc.lora_A 715/2\n- 601/7\n"
                "CrossEntropyLoss 204/1\n");
    check_group(k, TMK_BY_STAGE,
                "model_load 2054/4\nforward 809/4\nbackward 601/2\nother 205/2\n"
                "optimizer_setup 201/2\ndata 195/3\n");
    check_group(k, TMK_BY_STEP, "- 2460/8\n0 1605/9\n");
    check_group(k, TMK_BY_TENSOR,
                "- 1646/11\nbody.mlp.fc.lora_A.weight 814/2\nnorm.mean 515/1\nnorm.weight 514/1\n"
                "body.mlp.fc.weight 512/1\ninput_ids 64/1\n");
    tmk_peak_close(k);
    close_fixture(&f);
}

int main(void)
{
    unsetenv("TIDEMARK_COMPONENTS");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks), cmocka_unit_test(test_model), cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_groups), cmocka_unit_test(test_site),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
