/* SPDX-License-Identifier: MIT */
/* test_redact.c - what of a command line is kept: all of it but secrets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "record/identity.h"

/* Arguments here are separated by '|'. */
static const struct {
    const char *arguments, *wanted;
} cases[] = {
    {"", ""},
    {"train", "train"},
    {"train|--steps|10|--lr=1e-3", "train --steps 10 --lr=1e-3"},
    {"train|--token|abc|x", "train --token *** x"},
    {"train|--token=abc|x", "train --token=*** x"},
    {"train|--hf-token|abc", "train --hf-token ***"},
    {"train|--hf_token=abc", "train --hf_token=***"},
    {"train|--apiKey|abc", "train --apiKey ***"},
    {"train|--api-key=a=b:c", "train --api-key=***"},
    {"train|API_KEY=abc|y", "train API_KEY=*** y"},
    {"train|-password|abc", "train -password ***"},
    {"train|--PASSWORD|abc", "train --PASSWORD ***"},
    {"train|--client-secret|abc", "train --client-secret ***"},
    {"train|secret:abc", "train secret:***"},
    {"env|AWS_SECRET_ACCESS_KEY=abc|train", "env AWS_SECRET_ACCESS_KEY=*** train"},
    {"curl|-H|x-auth-token: abc", "curl -H x-auth-token:***"},
    /* words that only look like it */
    {"train|--max-tokens|100", "train --max-tokens 100"},
    {"train|--tokenizer|bpe", "train --tokenizer bpe"},
    {"train|--keyboard=us", "train --keyboard=us"},
    {"train|--num-keys=4", "train --num-keys=4"},
    {"train|--monkey|see", "train --monkey see"},
    /* a secret's name at the end, or before another flag */
    {"train|--token", "train --token"},
    {"train|--token|--steps|3", "train --token --steps 3"},
    {"train|--token||x", "train --token *** x"},
    /* passwords in URLs */
    {"git|clone|https://user:pw@host/x", "git clone https://user:***@host/x"},
    {"run|--store=redis://:pw@host:1/0", "run --store=redis://:***@host:1/0"},
    {"get|token://user:pw@host", "get token://user:***@host"},
    {"git|clone|https://host:80/a@b", "git clone https://host:80/a@b"},
    {"git|clone|https://host/x", "git clone https://host/x"},
};

static void test_cases(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char arguments[256], line[256];
        size_t n = strlen(cases[i].arguments);
        memcpy(arguments, cases[i].arguments, n + 1);
        for (char *c = arguments; *c; c++)
            if (*c == '|')
                *c = '\0';
        struct tmk_text text;
        tmk_text_init(&text, line, sizeof line);
        tmk_redact_command(arguments, n ? n + 1 : 0, &text);
        assert_string_equal(line, cases[i].wanted);
    }
}

/* A command line that was cut in the middle of an argument ends without a zero byte. */
static void test_no_zero_at_the_end(void **unused)
{
    (void)unused;
    static const char arguments[] = {'a', '\0', '-', '-', 'k', 'e', 'y', '=', 'v', 'v', '\0'};
    char line[64];
    struct tmk_text text;
    tmk_text_init(&text, line, sizeof line);
    tmk_redact_command(arguments, sizeof arguments - 1, &text);
    assert_string_equal(line, "a --key=***");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_no_zero_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
