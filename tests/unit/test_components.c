/* SPDX-License-Identifier: MIT */
/* Components of models as they are written: what each module, and each parameter, is taken for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "model/components.h"

struct known {
    const char *name, *class;
};

static const char *class_of(const void *arg, const char *name)
{
    for (const struct known *k = arg; k->name; k++)
        if (strcmp(k->name, name) == 0)
            return k->class;
    return NULL;
}

static void check(const struct known *model, const char *name, const char *component)
{
    struct tmk_components *c = NULL;
    struct tmk_error problem;
    struct tmk_model_tree tree = {class_of, model};
    assert_int_equal(tmk_components_open(&c, &problem), 0);
    assert_string_equal(problem.text, "");
    const char *found = tmk_components_find(c, &tree, name);
    if (strcmp(found, component) != 0)
        fail_msg("%s is %s, not %s", name, found, component);
    tmk_components_close(c);
}

static const struct known encoder[] = {
    {"TransformerEncoder", "torch.nn.modules.transformer.TransformerEncoder"},
    {"layers", "torch.nn.modules.container.ModuleList"},
    {"layers.0", "torch.nn.modules.transformer.TransformerEncoderLayer"},
    {"layers.0.self_attn", "torch.nn.modules.activation.MultiheadAttention"},
    {"layers.0.self_attn.out_proj", "torch.nn.modules.linear.NonDynamicallyQuantizableLinear"},
    {"layers.0.linear1", "torch.nn.modules.linear.Linear"},
    {"layers.0.linear2", "torch.nn.modules.linear.Linear"},
    {"layers.0.norm1", "torch.nn.modules.normalization.LayerNorm"},
    {"layers.0.dropout", "torch.nn.modules.dropout.Dropout"},
    {"layers.0.dropout1", "torch.nn.modules.dropout.Dropout"},
    {"layers.0.dropout2", "torch.nn.modules.dropout.Dropout"},
    {NULL, NULL},
};

static void test_encoder(void **unused)
{
    (void)unused;
    check(encoder, "TransformerEncoder", "other");
    check(encoder, "layers.0", "other");
    check(encoder, "layers.0.self_attn", "attention");
    check(encoder, "layers.0.self_attn.out_proj", "attention");
    check(encoder, "layers.0.self_attn.in_proj_weight", "attention"); /* a parameter */
    check(encoder, "layers.0.linear1", "mlp");
    check(encoder, "layers.0.linear2.bias", "mlp");
    check(encoder, "layers.0.norm1", "normalization");
    check(encoder, "layers.0.dropout", "mlp");
    check(encoder, "layers.0.dropout1", "attention");
    check(encoder, "layers.0.dropout2", "mlp");
    check(encoder, "CrossEntropyLoss", "other");
    check(encoder, "AdamW", "other");
}

static const struct known llama[] = {
    {"base_model.model.model.embed_tokens", "torch.nn.modules.sparse.Embedding"},
    {"base_model.model.model.layers.0", "transformers.models.llama.LlamaDecoderLayer"},
    {"base_model.model.model.layers.0.self_attn", "transformers.models.llama.LlamaAttention"},
    {"base_model.model.model.layers.0.self_attn.q_proj", "peft.tuners.lora.layer.Linear"},
    {"base_model.model.model.layers.0.self_attn.q_proj.base_layer", "torch.nn.Linear"},
    {"base_model.model.model.layers.0.self_attn.q_proj.lora_A", "torch.nn.ModuleDict"},
    {"base_model.model.model.layers.0.self_attn.q_proj.lora_A.default", "torch.nn.Linear"},
    {"base_model.model.model.layers.0.mlp", "transformers.models.llama.LlamaMLP"},
    {"base_model.model.model.layers.0.mlp.gate_proj", "torch.nn.Linear"},
    {"base_model.model.model.layers.0.mlp.act_fn", "torch.nn.SiLU"},
    {"base_model.model.model.layers.0.input_layernorm", "transformers.LlamaRMSNorm"},
    {"base_model.model.model.rotary_emb", "transformers.LlamaRotaryEmbedding"},
    {"base_model.model.model.norm", "transformers.LlamaRMSNorm"},
    {"base_model.model.lm_head", "torch.nn.Linear"},
    {NULL, NULL},
};

static void test_lora(void **unused)
{
    (void)unused;
#define L "base_model.model.model.layers.0."
    check(llama, L "self_attn.q_proj.lora_A.default", "lora");
    check(llama, L "self_attn.q_proj.lora_B.default.weight", "lora");
    check(llama, L "self_attn.q_proj.lora_dropout.default", "lora");
    check(llama, L "self_attn.q_proj", "attention");
    check(llama, L "self_attn.q_proj.base_layer.weight", "attention");
    check(llama, L "mlp.gate_proj", "mlp");
    check(llama, L "mlp.act_fn", "mlp");
    check(llama, L "input_layernorm.weight", "normalization");
    check(llama, "base_model.model.model.norm", "normalization");
    check(llama, "base_model.model.model.rotary_emb", "attention");
    check(llama, "base_model.model.model.embed_tokens.weight", "embedding");
    check(llama, "base_model.model.lm_head", "head");
    check(llama, "adapter.lora_A", "lora"); /* a parameter of a module of one's own */
}

static const struct known mixture[] = {
    {"layers.0.mlp", "transformers.models.qwen2_moe.Qwen2MoeSparseMoeBlock"},
    {"layers.0.mlp.gate", "torch.nn.Linear"},
    {"layers.0.mlp.experts", "torch.nn.ModuleList"},
    {"layers.0.mlp.experts.3", "transformers.models.qwen2_moe.Qwen2MoeMLP"},
    {"layers.0.mlp.experts.3.gate_proj", "torch.nn.Linear"},
    {"layers.0.mlp.experts.3.norm", "torch.nn.LayerNorm"},
    {"layers.0.mlp.experts.3.w1.lora_A.default", "torch.nn.Linear"},
    {"layers.0.mlp.shared_expert", "transformers.models.qwen2_moe.Qwen2MoeMLP"},
    {"layers.0.mlp.shared_expert_gate", "torch.nn.Linear"},
    {"layers.0.self_attn", "transformers.models.qwen2_moe.Qwen2MoeAttention"},
    {"layers.1.mlp", "transformers.models.qwen2_moe.Qwen2MoeMLP"},
    {"layers.1.mlp.gate", "torch.nn.Linear"},
    {NULL, NULL},
};

static void test_mixture(void **unused)
{
    (void)unused;
    check(mixture, "layers.0.mlp", "expert");
    check(mixture, "layers.0.mlp.gate", "router");
    check(mixture, "layers.0.mlp.gate.weight", "router");
    check(mixture, "layers.0.mlp.experts", "expert");
    check(mixture, "layers.0.mlp.experts.3", "expert");
    check(mixture, "layers.0.mlp.experts.3.w1", "expert");
    check(mixture, "layers.0.mlp.experts.3.gate_proj.weight", "expert");
    check(mixture, "layers.0.mlp.experts.3.norm", "normalization");
    check(mixture, "layers.0.mlp.experts.3.w1.lora_A.default", "lora");
    check(mixture, "layers.0.mlp.shared_expert.up_proj", "expert");
    check(mixture, "layers.0.mlp.shared_expert_gate", "router");
    check(mixture, "layers.0.self_attn.q_proj", "attention");
    check(mixture, "layers.1.mlp.gate", "mlp"); /* no experts beside it: not a router */
}

static const struct known cnn[] = {
    {"ResNet", "torchvision.models.resnet.ResNet"},
    {"conv1", "torch.nn.modules.conv.Conv2d"},
    {"bn1", "torch.nn.modules.batchnorm.BatchNorm2d"},
    {"layer1.0", "torchvision.models.resnet.BasicBlock"},
    {"layer1.0.conv2", "torch.nn.modules.conv.Conv2d"},
    {"layer1.0.bn2", "torch.nn.modules.batchnorm.BatchNorm2d"},
    {"layer1.0.relu", "torch.nn.modules.activation.ReLU"},
    {"maxpool", "torch.nn.modules.pooling.MaxPool2d"},
    {"fc", "torch.nn.modules.linear.Linear"},
    {"Discriminator", "gan.Discriminator"},
    {"Discriminator.fc", "torch.nn.modules.linear.Linear"},
    {"Discriminator.body", "torch.nn.Sequential"},
    {"Discriminator.body.fc", "torch.nn.modules.linear.Linear"},
    {"h.0.attn.c_attn", "transformers.pytorch_utils.Conv1D"}, /* which is no convolution */
    {NULL, NULL},
};

static void test_cnn(void **unused)
{
    (void)unused;
    check(cnn, "conv1", "conv");
    check(cnn, "bn1.weight", "normalization");
    check(cnn, "layer1.0", "conv");
    check(cnn, "layer1.0.conv2.weight", "conv");
    check(cnn, "layer1.0.bn2.running_mean", "normalization");
    check(cnn, "layer1.0.relu", "conv");
    check(cnn, "maxpool", "other");
    check(cnn, "fc", "head");
    check(cnn, "Discriminator.fc", "head");
    check(cnn, "Discriminator.body.fc", "other");
    check(cnn, "h.0.attn.c_attn", "attention");
    check(cnn, "", "other");
    check(cnn, "...", "other");
}

/* ---- rules of the user's own ---- */

static void write_file(char *path, const char *text)
{
    strcpy(path, "/tmp/tmk_components_XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    setenv("TIDEMARK_COMPONENTS", path, 1);
}

static void test_own_rules(void **unused)
{
    (void)unused;
    char path[64];
    write_file(path, "# ours\n"
                     "\n"
                     "projector  name:mm_proj*   # of images\r\n"
                     "encoder path:layers.0.* class:Linear\n"
                     "vision class:my.vision.*\n"
                     "attention name:linear1 in:TransformerEncoderLayer\n");
    static const struct known own[] = {{"mm_projector", "my.vision.Projector"},
                                       {"tower", "my.vision.Tower"},
                                       {"tower.norm", "torch.nn.LayerNorm"},
                                       {NULL, NULL}};
    check(own, "mm_projector.0", "projector");
    check(own, "tower", "vision");
    check(own, "tower.blocks.1", "vision");
    check(own, "tower.norm", "normalization"); /* the innermost decides */
    check(encoder, "layers.0.linear1", "encoder");
    check(encoder, "layers.0.self_attn", "attention");
    unlink(path);
    unsetenv("TIDEMARK_COMPONENTS");
}

static void check_problem(const char *text, const char *end)
{
    char path[64];
    struct tmk_components *c = NULL;
    struct tmk_error problem;
    write_file(path, text);
    assert_int_equal(tmk_components_open(&c, &problem), 0);
    const char *found = strstr(problem.text, ": ");
    assert_non_null(found);
    assert_memory_equal(problem.text, path, strlen(path));
    assert_string_equal(found + 2, end);
    struct tmk_model_tree tree = {class_of, encoder};
    assert_string_equal(tmk_components_find(c, &tree, "good"), "mine"); /* the rest counts */
    tmk_components_close(c);
    unlink(path);
    unsetenv("TIDEMARK_COMPONENTS");
}

static void test_bad_rules(void **unused)
{
    (void)unused;
    check_problem("mine name:good\nattention\n",
                  "line 2 is not 'COMPONENT name:PATTERN' or the like");
    check_problem("x nme:a\nmine name:good", "line 1 is not 'COMPONENT name:PATTERN' or the like");
    check_problem("mine name:good\nx name:\n",
                  "line 2 is not 'COMPONENT name:PATTERN' or the like");
    check_problem("name:a name:b\nmine name:good\n",
                  "line 1 is not 'COMPONENT name:PATTERN' or the like");
    check_problem("x top top top top top\nmine name:good\n",
                  "line 1 is not 'COMPONENT name:PATTERN' or the like");
}

static void test_files(void **unused)
{
    (void)unused;
    struct tmk_components *c = NULL;
    struct tmk_error problem;
    setenv("TIDEMARK_COMPONENTS", "/nowhere/rules", 1);
    assert_int_equal(tmk_components_open(&c, &problem), 0);
    assert_string_equal(problem.text, "cannot read /nowhere/rules: no such file or folder");
    tmk_components_close(c);
    char path[64];
    write_file(path, ""); /* empty: no rules */
    check(encoder, "layers.0.norm1", "normalization");
    unlink(path);
    unsetenv("TIDEMARK_COMPONENTS");
    setenv("HOME", "/nowhere", 1); /* where nothing was asked for, nothing is missing */
    check(encoder, "layers.0.norm1", "normalization");
    setenv("XDG_CONFIG_HOME", "/nowhere", 1);
    check(encoder, "layers.0.norm1", "normalization");
}

int main(void)
{
    unsetenv("TIDEMARK_COMPONENTS");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encoder),   cmocka_unit_test(test_lora),
        cmocka_unit_test(test_mixture),   cmocka_unit_test(test_cnn),
        cmocka_unit_test(test_own_rules), cmocka_unit_test(test_bad_rules),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
