/* SPDX-License-Identifier: MIT */
/* test_redact.c - what of a command line is kept: all of it but secrets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "record/identity/redact.h"
#include "record/identity/secret_names.h"

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
    {"curl|-H|x-auth-token: abc", "curl -H x-auth-token: ***"},
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
    {"git|clone|https://user:p@w@host/x", "git clone https://user:***@host/x"},
    {"git|clone|https://ghp_0123456789abcdefghijABCDEFGHIJ@host/x", "git clone https://***@host/x"},
    {"git|clone|https://me@host/x", "git clone https://me@host/x"},
    /* parameters of a URL */
    {"get|https://h/p?token=abc", "get https://h/p?token=***"},
    {"get|https://h/p?lr=1&token=abc&x=2", "get https://h/p?lr=1&token=***&x=2"},
    {"get|--url=https://u:pw@h/?api_key=abc#top", "get --url=https://u:***@h/?api_key=***"},
    {"get|https://h/?next=%2Fa%3Ftoken%3Dabc", "get https://h/?next=%2Fa%3Ftoken%3D***"},
    {"get|h?access_token=a.b.c;lr=1", "get h?access_token=***"},
    /* lists of values */
    {"train|--set|lr=1,token=abc", "train --set lr=1,token=***"},
    {"train|--set|token=abc,lr=1", "train --set token=***"},
    {"train|--set|token=abc,def", "train --set token=***"},
    {"train|model.key=abc", "train model.key=***"},
    {"train|+hub.token=abc|++x=1", "train +hub.token=*** ++x=1"},
    /* JSON, Python, TOML, and JSON in a string */
    {"train|{\"token\": \"abc\", \"lr\": 1}", "train {\"token\": \"***\", \"lr\": 1}"},
    {"train|--config={\"hf\":{\"api_key\":\"a,b\"}}",
     "train --config={\"hf\":{\"api_key\":\"***\"}}"},
    {"train|{'password' : 'a b', 'x': 2}", "train {'password' : '***', 'x': 2}"},
    {"train|{\\\"token\\\": \\\"abc\\\", 1}", "train {\\\"token\\\": \\\"***\\\", 1}"},
    {"train|{\"token\": \"a\\\"b\", \"x\": 1}", "train {\"token\": \"***\", \"x\": 1}"},
    {"train|{\"secret\": {\"a\": \"b\"}, \"x\": 1}", "train {\"secret\": ***, \"x\": 1}"},
    {"train|{\"keys\": [1, 2], \"x\": 1}", "train {\"keys\": [1, 2], \"x\": 1}"},
    {"train|{token: abc, lr: 1}", "train {token: ***"},
    {"train|{\"token\":|\"abc\"}", "train {\"token\": ***"},
    {"python|-c|os.environ[\"API_KEY\"]=\"x y\"; go()",
     "python -c os.environ[\"API_KEY\"]=\"***\"; go()"},
    {"python|-c|login(token='abc', n=3)", "python -c login(token='***', n=3)"},
    {"train|--toml|api_key = \"X\"", "train --toml api_key = ***"},
    /* blanks around the sign, in one argument and in several */
    {"train|api_key = X", "train api_key = ***"},
    {"train|api_key|=|X|y", "train api_key = *** y"},
    {"train|api_key|=X|y", "train api_key =*** y"},
    {"train|api_key=|X|y", "train api_key=*** *** y"},
    {"train|--token =abc", "train --token =***"},
    {"sh|-c|train --token abc --lr 3", "sh -c train --token *** --lr 3"},
    {"sh|-c|API_KEY=abc train --lr 3", "sh -c API_KEY=*** train --lr 3"},
    {"sh|-c|train --token --lr 3", "sh -c train --token --lr 3"},
    {"sh|-c|export PW='a b'; train", "sh -c export PW=***; train"},
    /* names that are written together */
    {"train|--mypassword=abc", "train --mypassword=***"},
    {"train|--dbpasswd|abc", "train --dbpasswd ***"},
    {"train|HFTOKEN=abc", "train HFTOKEN=***"},
    {"train|--accesskey=abc", "train --accesskey=***"},
    {"train|--secretkey|abc", "train --secretkey ***"},
    {"train|--authtoken=abc", "train --authtoken=***"},
    {"train|--db-pass=abc", "train --db-pass=***"},
    {"train|WANDB_API_KEY:=abc", "train WANDB_API_KEY:=***"},
    {"train|--pass-rate=3", "train --pass-rate=3"},
    {"train|--hotkey=a", "train --hotkey=a"},
    {"train|--bypass=a", "train --bypass=a"},
    {"train|--author=me", "train --author=me"},
    /* headers */
    {"curl|-H|Authorization: Bearer abc def", "curl -H Authorization: ***"},
    {"curl|-H|Authorization:|Bearer|abc|u", "curl -H Authorization: *** *** u"},
    {"curl|-HAuthorization: Basic abc", "curl -HAuthorization: ***"},
    {"curl|-u|me:abc|h", "curl -u me:*** h"},
    {"curl|--user=me:abc|h", "curl --user=me:*** h"},
    {"ls|-u|me", "ls -u me"},
    /* values that say it themselves */
    {"login|hf_abcdefghijklmnopqrstuvwxyzABCDEFGH", "login ***"},
    {"login|--with=sk-abcdefghijklmnopqrstuvwx", "login --with=***"},
    {"train|hf_model|sk-learn", "train hf_model sk-learn"},
    {"login|npm_abcdefghijklmnopqrstuvwxyz0123456789", "login ***"},
    {"login|pypi-AgEIcHlwaS5vcmcCJDAwMDAwMDAw", "login ***"},
    {"login|nvapi-ab-cd_efghijklmnopqrst", "login ***"},
    {"login|gsk_abcdefghijklmnopqrstuvwxyz", "login ***"},
    {"login|ghs_abcdefghijklmnopqrstuvwxyz", "login ***"},
    {"login|gho_abcdefghijklmnopqrstuvwxyz", "login ***"},
    {"login|ghu_abcdefghijklmnopqrstuvwxyz", "login ***"},
    {"login|github_pat_11ABCDEFG_hijklmnop", "login ***"},
    {"login|AKIAIOSFODNN7EXAMPLE", "login ***"},
    {"login|ASIAIOSFODNN7EXAMPLE", "login ***"},
    {"login|AIzaSyA-bcdefghij_klmnopqrstuvwxyz01234", "login ***"},
    {"login|xoxb-12345-67890-abcdefghij", "login ***"},
    {"login|xoxa-12345-67890-abcdefghij", "login ***"},
    {"login|xoxp-12345-67890-abcdefghij", "login ***"},
    {"login|glpat-ab_cdefgh-ijklmnop", "login ***"},
    {"login|sk-proj-abcdefghijklmnop-qr_st", "login ***"},
    {"login|eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "login ***"},
    {"login|a/hf_abcdefghijklmnopqrstuvwxyz", "login a/***"},
    {"login|my_hf_abcdefghijklmnopqrstuvwxyz", "login my_***"},
    {"login|(\"sk-abcdefghijklmnopqrstuvwx\")", "login (\"***\")"},
    {"login|-----BEGIN RSA PRIVATE KEY-----\nabc", "login ***"},
    /* values that only look like it */
    {"train|hf_transfer_enabled_model_name_long", "train hf_transfer_enabled_model_name_long"},
    {"train|sk-learn-is-a-very-long-name-of-a-package",
     "train sk-learn-is-a-very-long-name-of-a-package"},
    {"train|pandas/eyJupyter-notebook-long-name", "train pandas/eyJupyter-notebook-long-name"},
    {"train|npm_config_registry_of_the_company", "train npm_config_registry_of_the_company"},
    {"train|ASIAN_LANGUAGES_OF_A_DATASET", "train ASIAN_LANGUAGES_OF_A_DATASET"},
    {"train|-----BEGIN CERTIFICATE-----", "train -----BEGIN CERTIFICATE-----"},
    /* a value goes to the end of its argument, whatever is in it */
    {"p|--password=a b|x", "p --password=*** x"},
    {"p|--password=a)b", "p --password=***"},
    {"p|--password=a]b", "p --password=***"},
    {"p|--password=a}b", "p --password=***"},
    {"p|--password=a&b", "p --password=***"},
    {"p|--password=a&b=c", "p --password=***"},
    {"p|--password=a,b=c", "p --password=***"},
    {"p|--password=a;b=c", "p --password=***"},
    {"p|--password=(a)b", "p --password=***"},
    {"p|--password={a}b", "p --password=***"},
    {"p|--password=[a]b", "p --password=***"},
    {"p|--password=\"a\"b", "p --password=***"},
    {"p|--password='a'b", "p --password=***"},
    {"p|--password='a' 'b'", "p --password=***"},
    {"p|--passphrase=\"correct horse battery", "p --passphrase=***"},
    {"p|--passphrase=\"correct horse\" battery", "p --passphrase=***"},
    {"p|--password|a b|x", "p --password *** x"},
    {"p|--password a b", "p --password ***"},
    {"p|password=a\nb", "p password=***"},
    {"p|secret:\n  a\n  b", "p secret:\n  ***"},
    {"p|Password: a b", "p Password: ***"},
    {"p|--set=auth.password=a b", "p --set=auth.password=***"},
    {"p|Server=x;User Id=sa;Password=a;b", "p Server=x;User Id=sa;Password=***"},
    {"p|AccountName=n;AccountKey=abc==;EndpointSuffix=core", "p AccountName=n;AccountKey=***"},
    {"p|SharedAccessSignature sig=abc%3D", "p SharedAccessSignature sig=***"},
    {"p|https://b/c?sv=1&sig=abc&se=2026", "p https://b/c?sv=1&sig=***&se=2026"},
    {"p|https://b/c?X-Amz-Signature=abc", "p https://b/c?X-Amz-Signature=***"},
    {"p|https://h/?token=a&b", "p https://h/?token=***"},
    {"p|https://h/?a=1&amp;token=b", "p https://h/?a=1&amp;token=***"},
    {"p|token[]=a|token[0]=b", "p token[]=*** token[0]=***"},
    {"p|%7B%22token%22%3A%22abc%22%7D", "p %7B%22token%22%3A***"},
    {"p|amqp://u:p/q@h/v", "p amqp://u:***@h/v"},
    {"p|http://host:8080/@x", "p http://host:8080/@x"},
    {"p|http://h/x:y@z", "p http://h/x:y@z"},
    /* in quotes or brackets: to their end, if nothing more could belong to it */
    {"p|{\"a\": 1, \"password\": \"a b\"}|x", "p {\"a\": 1, \"password\": \"***\"} x"},
    {"p|{\"password\": \"a\"b\", \"c\": 1}", "p {\"password\": ***"},
    {"p|{\"password\": \"a\"\"b\"}", "p {\"password\": ***"},
    {"p|{\"password\": \"a\" + \"b\"}", "p {\"password\": ***"},
    {"p|{\"password\": \"a)b\", \"c\": 1}", "p {\"password\": \"***\", \"c\": 1}"},
    {"p|{\"passwords\": [\"a\", \"b]c\"], \"d\": 1}", "p {\"passwords\": ***, \"d\": 1}"},
    {"p|{\"passwords\": [\"a\"]b, \"d\": 1}", "p {\"passwords\": ***"},
    {"p|{\"password\": 123, \"c\": 1}", "p {\"password\": ***, \"c\": 1}"},
    {"p|{\"password\": 123abc, \"c\": 1}", "p {\"password\": ***"},
    {"p|{\"token\": null, \"c\": 1}", "p {\"token\": null, \"c\": 1}"},
    {"p|{\"cmd\": \"p --password a b\", \"c\": 1}", "p {\"cmd\": \"p --password ***\", \"c\": 1}"},
    {"p|{\"url\": \"http://h/?token=a\", \"c\": 1}",
     "p {\"url\": \"http://h/?token=***\", \"c\": 1}"},
    {"p|{\"a\": \"don't\", \"token\": \"a'b\", \"c\": 1}",
     "p {\"a\": \"don't\", \"token\": \"***\", \"c\": 1}"},
    {"p|f(password=\"a\")", "p f(password=\"***\")"},
    {"p|f(password=\"a\")b", "p f(password=***"},
    {"p|f(password=\"a\",b)", "p f(password=***"},
    {"p|f(password=\"a\",b=1)", "p f(password=\"***\",b=1)"},
    {"p|f(password=a, b=1)", "p f(password=***"},
    /* scripts of a shell: to the end of its word */
    {"bash|-c|p --password \"a b\" --c d", "bash -c p --password *** --c d"},
    {"bash|-c|p --password 'a b' c", "bash -c p --password *** c"},
    {"bash|-c|p --password a\\ b c", "bash -c p --password *** c"},
    {"bash|-c|p --password 'a'\"b c\"d e", "bash -c p --password *** e"},
    {"bash|-c|p --password='a b' c", "bash -c p --password=*** c"},
    {"bash|-lc|PASSWORD='a b' p c", "bash -lc PASSWORD=*** p c"},
    {"bash|-o|pipefail|-c|PASSWORD=a p", "bash -o pipefail -c PASSWORD=*** p"},
    {"/bin/sh|-ec|export TOKEN=a; p", "/bin/sh -ec export TOKEN=***; p"},
    {"bash|-c|curl -H 'Authorization: Bearer a b' h", "bash -c curl -H 'Authorization: *** h"},
    {"bash|-c|curl -u me:a h", "bash -c curl -u me:*** h"},
    {"bash|-c|p --password 'a b", "bash -c p --password ***"},
    {"bash|-c|bash -c \"p --password 'a b' c\" d", "bash -c bash -c \"p --password *** d"},
    {"bash|p.sh|-c|password=a b", "bash p.sh -c password=***"},
    {"python|-c|login(token='a b', c=1)", "python -c login(token='***', c=1)"},
    {"p|--wrap=q --password a b --c d", "p --wrap=q --password *** --c d"},
    {"p|--wrap=q --password \"a -b\" --c d", "p --wrap=q --password \"***\" --c d"},
    /* several values, numbers of them, and words that are none */
    {"p|--api-keys|a|b|--c|d", "p --api-keys *** *** --c d"},
    {"p|--passwords|1|2", "p --passwords *** ***"},
    {"p|--tokens|5", "p --tokens 5"},
    {"p|--foo_tokens=2048", "p --foo_tokens=2048"},
    {"p|tokens=abc", "p tokens=***"},
    {"p|--hub-token|None|--c", "p --hub-token None --c"},
    {"p|--use_auth_token=False", "p --use_auth_token=False"},
    /* users */
    {"docker|run|--user|1000:1000|i", "docker run --user 1000:1000 i"},
    {"docker|run|--user=0:0|i", "docker run --user=0:0 i"},
    {"python|-u|a:b.py", "python -u a:b.py"},
    {"/usr/bin/python3.11|-X|dev|-u|a:b.py", "/usr/bin/python3.11 -X dev -u a:b.py"},
    {"python|t.py|-u|me:abc", "python t.py -u me:***"},
    /* nothing to hide */
    {"train|a:b|c=d|e,f|{\"g\": 1}|http://h/?i=j&k=l",
     "train a:b c=d e,f {\"g\": 1} http://h/?i=j&k=l"},
    {"train|=|:|?|'|\"|{", "train = : ? ' \" {"},
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
        if (strcmp(line, cases[i].wanted) != 0)
            fail_msg("%s\nbecame %s\nwanted %s", cases[i].arguments, line, cases[i].wanted);
    }
}

static const char *const secret_names[] = {
    "token",
    "--hf-token",
    "--hf_tokens",
    "HFTOKEN",
    "hubToken",
    "HFToken",
    "auth_token",
    "refresh-token",
    "X-Auth-Token",
    "api_token_2",
    "token_value",
    "--foo-token",
    "--user-token",
    "22token",
    "key",
    "--api-key",
    "--api-keys",
    "apikeys",
    "APIKEY",
    "apiKey",
    "--openaikey",
    "--openai-key",
    "AWSACCESSKEY",
    "access-key-id",
    "AWS_ACCESS_KEY_ID",
    "--private_key",
    "--license-key",
    "model.api.key",
    "AccountKey",
    "ssh_key_data",
    "password",
    "passwords",
    "--mypassword",
    "db.password1",
    "PGPASSWORD",
    "--passphrase",
    "passcode",
    "MYSQL_PWD",
    "-pw",
    "--pass",
    "--db-pass",
    "--keypass",
    "--storepass",
    "--pgpass",
    "secret",
    "secrets",
    "clientSecret",
    "secret_key_base",
    "--cred",
    "--creds",
    "credentials",
    "credentials_json",
    "--auth",
    "auth_header",
    "oauth2",
    "Authorization",
    "-HAuthorization",
    "--jwt",
    "--cookie",
    "cookies",
    "sig",
    "X-Amz-Signature",
    "--otp",
    "webhook_url",
    "-eTOKEN",
    "--a-b-c-d-e-f-g-h-i-j-k-l-m-o-p-q-r-s-token",
};

static const char *const other_names[] = {
    "--num-key-value-heads",
    "--pad-token-id",
    "--token-dropout",
    "--max_token_len",
    "--key-dim",
    "--eos_token",
    "--tokenizer",
    "--num_tokens",
    "--max-tokens",
    "maxtokens",
    "maxNewTokens",
    "--max_new_tokens",
    "--n-token",
    "n_kv_keys",
    "--num-keys",
    "--special-tokens",
    "additional_special_tokens",
    "eosToken",
    "--image-token",
    "--token-type-ids",
    "--per-token-loss",
    "--per_token",
    "--token_budget",
    "--max-tokens-per-gpu",
    "--image-key",
    "--label-key",
    "dataset.text_key",
    "--sort-key",
    "--dict-key",
    "--primary-key",
    "--json-keys",
    "--state-dict-keys",
    "--keyboard",
    "--monkey",
    "--hotkey",
    "--turkey",
    "--no-auth",
    "--noauth",
    "--skip-secret-scan",
    "--disable-token-auth",
    "--auth-mode",
    "--api-key-file",
    "--token-file",
    "PASSWORD_FILE",
    "--api-key-env",
    "--password-length",
    "--secret-name",
    "--author",
    "--authentic",
    "--secretary",
    "--passes",
    "--pass-rate",
    "--num-pass",
    "--forward-pass",
    "--bypass",
    "--compass",
    "--lowpass",
    "--passthrough",
    "--user",
    "--session-dir",
    "--signal",
    "--design",
    "",
    "--",
    "-",
    "1",
    "s",
};

static void test_names(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof secret_names / sizeof secret_names[0]; i++)
        if (tmk_secret_name(secret_names[i], strlen(secret_names[i])) == TMK_SECRET_NOT)
            fail_msg("'%s' would be shown", secret_names[i]);
    for (size_t i = 0; i < sizeof other_names / sizeof other_names[0]; i++)
        if (tmk_secret_name(other_names[i], strlen(other_names[i])) != TMK_SECRET_NOT)
            fail_msg("'%s' would be hidden", other_names[i]);
}

/* ---- whatever is behind a secret's name ---- */

enum { N_TEXTS = 200000, MOST_PIECES = 10 };

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* An argument that begins with such a name shows nothing of what comes; and it comes to an end. */
static void test_of_everything(void **unused)
{
    static const char *const begins[] = {"--password=", "api_key: ", "+hub.token:=", ""};
    static const char *const pieces[] = {
        "--password", "token",  "=",   ":",   "\"",  "'",   "\\\"",    "\\", "MARK", "{",
        "}",          "[",      "]",   "(",   ")",   "&",   ",",       ";",  " ",    "a",
        "b=",         "--lr 3", "://", "@",   "?",   "%3D", "%22",     "\n", "-u",   "~",
        "null",       "+",      "|",   "sk-", "1:2", "5,",  "--user ",
    };
    (void)unused;
    uint32_t random = 1;
    for (int i = 0; i < N_TEXTS; i++) {
        char arguments[256], line[512];
        const char *begin = begins[next_random(&random) % 4];
        strcpy(arguments, begin);
        for (uint32_t n = next_random(&random) % MOST_PIECES; n > 0; n--)
            strcat(arguments, pieces[next_random(&random) % (sizeof pieces / sizeof pieces[0])]);
        struct tmk_text text;
        tmk_text_init(&text, line, sizeof line);
        tmk_redact_command(arguments, strlen(arguments) + 1, &text);
        if (*begin && strstr(line, "MARK"))
            fail_msg("'%s' became '%s'", arguments, line);
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
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_of_everything),
        cmocka_unit_test(test_no_zero_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
