/* SPDX-License-Identifier: MIT */
/* record/identity/secret_names.c - see secret_names.h.
 *
 * A name is split into words: at everything but letters and digits, and where a small letter meets
 * a capital. Digits at a word's end and a plural s do not count. Then:
 *
 *   1. a name that begins with "no", "skip" ... is a switch, and one that ends in "file", "len" ...
 *      says something about the secret: neither has a secret value
 *   2. "password", "secret" ... make it secret anywhere; "auth", "cookie" ... as its last word
 *   3. "token" and "key" are also words of language models. After "api", "hf" ... they are secret
 *      anywhere; else only as the last word, and not after "eos", "max", "image" ...
 *   4. words written together count like two words: HFTOKEN, dbpassword, openaikey
 *
 * An unknown name is secret: --foo-token is. So the lists of harmless words have to grow. */
#include "record/identity/secret_names.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum { MAX_WORDS = 16 };

struct name_word {
    const char *text;
    size_t n;
    bool is_plural;
};

typedef const char *const table[];

/* ---- 1. what is no secret ---- */

static table switches = {"no",     "not",     "non",     "skip",  "disable",
                         "enable", "without", "require", "allow", NULL};

static table about = {"file",    "path",     "dir",    "folder",   "env",      "var",
                      "name",    "mode",     "type",   "method",   "len",      "length",
                      "dim",     "size",     "count",  "rate",     "ratio",    "prob",
                      "dropout", "loss",     "limit",  "bit",      "ttl",      "timeout",
                      "expiry",  "version",  "format", "policy",   "endpoint", "host",
                      "port",    "provider", "level",  "required", "enabled",  NULL};

/* These say nothing at the end of a name: token_value, auth_header, webhook_url. */
static table weightless = {"value", "string", "header", "plain", "url", "uri", NULL};

/* ---- 2. what is one ---- */

static table anywhere = {"password", "passwd",     "passphrase", "passcode",      "secret",
                         "apikey",   "credential", "cred",       "authorization", NULL};

static table at_the_end = {"auth", "oauth", "bearer", "pwd",       "pw",  "pass",    "cookie",
                           "jwt",  "otp",   "totp",   "signature", "sig", "webhook", NULL};

/* Secret also as the end of a word. "pass" and "auth" end words that have nothing to do with
 * secrets. */
static table ends_anywhere = {"password", "passwd",     "passphrase",    "secret",
                              "apikey",   "credential", "authorization", NULL};
static table ends_at_the_end = {"pwd", "pass", "auth", NULL};
static table ends_in_vain = {"bypass",   "compass",   "encompass", "trespass",  "surpass",
                             "overpass", "underpass", "lowpass",   "highpass",  "bandpass",
                             "allpass",  "onepass",   "twopass",   "multipass", "singlepass",
                             "noauth",   NULL};

/* ---- 3. what may be one ---- */

/* Before "token" or "key": who issued it, or what it is for. */
static table strong = {
    "access",   "account",    "admin",     "anthropic", "api",        "app",      "auth",
    "aws",      "azure",      "bearer",    "bot",       "client",     "cohere",   "comet",
    "csrf",     "decryption", "deploy",    "docker",    "encryption", "gcp",      "gemini",
    "github",   "gitlab",     "google",    "gpg",       "hf",         "hub",      "huggingface",
    "identity", "jwt",        "kaggle",    "license",   "master",     "mistral",  "mlflow",
    "neptune",  "ngc",        "npm",       "nvidia",    "openai",     "private",  "pypi",
    "refresh",  "registry",   "replicate", "root",      "secret",     "security", "service",
    "session",  "shared",     "signing",   "slack",     "ssh",        "ssl",      "storage",
    "telegram", "tls",        "vault",     "wandb",     "xsrf",       NULL};

/* With one of these anywhere before it, it is a number of them. */
static table counts = {"n",   "num", "number", "max",   "min", "total",
                       "per", "avg", "mean",   "count", NULL};

/* Before "token": a token of a text or of a vocabulary. */
static table token_kinds = {
    "action",   "added",   "additional", "audio",    "batch",   "begin",   "bos",    "byte",
    "char",     "class",   "cls",        "context",  "ctx",     "decoder", "draft",  "encoder",
    "end",      "eom",     "eos",        "eot",      "eval",    "extra",   "fim",    "first",
    "forced",   "frame",   "global",     "ignore",   "image",   "img",     "input",  "last",
    "latent",   "line",    "local",      "mask",     "memory",  "middle",  "new",    "newline",
    "next",     "output",  "pad",        "patch",    "prefix",  "prev",    "prompt", "query",
    "register", "seen",    "sep",        "soft",     "source",  "special", "speech", "src",
    "start",    "stop",    "sub",        "suffix",   "summary", "system",  "target", "test",
    "text",     "tgt",     "think",      "thinking", "tool",    "train",   "unk",    "val",
    "video",    "virtual", "vision",     "visual",   "vocab",   "warmup",  "word",   NULL};

/* Before "key": a key of a table, a sample or an attention. */
static table key_kinds = {
    "answer",   "attention",   "attn",    "audio",   "batch",  "cache",    "caption",
    "chosen",   "col",         "column",  "content", "dict",   "feature",  "field",
    "foreign",  "group",       "hash",    "hot",     "image",  "img",      "index",
    "input",    "instruction", "item",    "join",    "json",   "kv",       "label",
    "lookup",   "map",         "mask",    "message", "metric", "monitor",  "order",
    "output",   "partition",   "primary", "prompt",  "query",  "question", "record",
    "rejected", "response",    "reward",  "row",     "sample", "score",    "sort",
    "state",    "target",      "text",    "time",    "video",  NULL};

/* Before "pass": one of several passes. */
static table pass_kinds = {"first", "second",  "one",      "two", "single",
                           "multi", "forward", "backward", NULL};

/* ---- words ---- */

static bool is_word_in(const struct name_word *w, const char *const *words)
{
    for (; *words; words++)
        if (strlen(*words) == w->n && strncasecmp(w->text, *words, w->n) == 0)
            return true;
    return false;
}

/* True when the word is longer than `end` and ends in it; *ret is what comes before. */
static bool word_ends_in(const struct name_word *w, const char *end, struct name_word *ret)
{
    size_t n = strlen(end);
    if (w->n <= n || strncasecmp(w->text + w->n - n, end, n) != 0)
        return false;
    *ret = (struct name_word){w->text, w->n - n, false};
    return true;
}

static bool word_ends_in_any(const struct name_word *w, const char *const *ends)
{
    struct name_word before;
    for (; *ends; ends++)
        if (word_ends_in(w, *ends, &before))
            return true;
    return false;
}

static bool is_plural(const struct name_word *w)
{
    return w->n > 3 && tolower((unsigned char)w->text[w->n - 1]) == 's' &&
           tolower((unsigned char)w->text[w->n - 2]) != 's';
}

/* Reduce a word to the form that the tables have. */
static struct name_word bare_word(const char *text, size_t n)
{
    struct name_word w = {text, n, false};
    while (w.n > 1 && isdigit((unsigned char)w.text[w.n - 1]))
        w.n--;
    w.is_plural = is_plural(&w);
    w.n -= w.is_plural;
    return w;
}

/* Split a name into its last MAX_WORDS words; returns how many. Numbers are no words. */
static size_t split_words(const char *name, size_t n, struct name_word *to)
{
    size_t start = 0, n_words = 0;
    for (size_t i = 0; i <= n; i++) {
        bool ends = i == n || !isalnum((unsigned char)name[i]);
        bool turns = !ends && i > start && isupper((unsigned char)name[i]) &&
                     islower((unsigned char)name[i - 1]);
        if (!ends && !turns)
            continue;
        struct name_word w = bare_word(name + start, i - start);
        if (w.n > 0 && !isdigit((unsigned char)w.text[w.n - 1])) {
            if (n_words == MAX_WORDS)
                memmove(to, to + 1, --n_words * sizeof *to);
            to[n_words++] = w;
        }
        start = i + ends;
    }
    return n_words;
}

/* ---- the rule ---- */

/* A word that may be secret, depending on those before it. */
struct word_place {
    const struct name_word *words;
    size_t i;                /* the word's index */
    struct name_word before; /* the word before it, or its own first part; n 0: there is none */
    bool is_last;
    bool may_be_number; /* step 3 found nothing against it */
};

static bool is_counted_word(const struct word_place *p)
{
    for (size_t i = 0; i < p->i; i++)
        if (is_word_in(&p->words[i], counts))
            return true;
    return is_word_in(&p->before, counts);
}

static bool is_ambiguous_secret(struct word_place *p, const char *const *kinds, bool needs_strong)
{
    if (is_word_in(&p->before, strong))
        return true;
    p->may_be_number = true;
    return p->is_last && !needs_strong && !is_counted_word(p) && !is_word_in(&p->before, kinds);
}

/* True when the word is `end` ("token") or ends in it. Then p->before is what comes before. */
static bool is_or_ends_in(struct word_place *p, const char *end)
{
    const struct name_word *w = &p->words[p->i];
    size_t n = strlen(end);
    p->before = p->i > 0 ? w[-1] : (struct name_word){0};
    return (w->n == n && strncasecmp(w->text, end, n) == 0) || word_ends_in(w, end, &p->before);
}

/* True when the word is one of `strong` ("api"), or ends in one: AWSACCESSKEY. */
static bool ends_strong(const struct name_word *w)
{
    enum { LEAST = 4 };
    for (const char *const *s = strong; *s; s++)
        if (strlen(*s) >= LEAST && word_ends_in_any(w, (const char *const[]){*s, NULL}))
            return true;
    return is_word_in(w, strong);
}

static bool is_secret_word(struct word_place *p)
{
    const struct name_word *w = &p->words[p->i];
    if (is_word_in(w, ends_in_vain))
        return false;
    if (is_word_in(w, anywhere) || word_ends_in_any(w, ends_anywhere))
        return true;
    if (is_or_ends_in(p, "token"))
        return is_ambiguous_secret(p, token_kinds, false);
    if (is_or_ends_in(p, "key"))
        return w->n == strlen("key") ? is_ambiguous_secret(p, key_kinds, w->is_plural)
                                     : ends_strong(&p->before);
    if (is_or_ends_in(p, "pass"))
        return p->is_last && !is_counted_word(p) && !is_word_in(&p->before, pass_kinds);
    return p->is_last && (is_word_in(w, at_the_end) || word_ends_in_any(w, ends_at_the_end));
}

enum tmk_secrecy tmk_secret_name(const char *name, size_t n)
{
    struct name_word words[MAX_WORDS];
    size_t n_words = split_words(name, n, words);
    while (n_words > 1 && is_word_in(&words[n_words - 1], weightless))
        n_words--;
    if (n_words == 0 || is_word_in(&words[0], switches) || is_word_in(&words[n_words - 1], about))
        return TMK_SECRET_NOT;
    for (size_t i = 0; i < n_words; i++) {
        struct word_place p = {.words = words, .i = i, .is_last = i + 1 == n_words};
        if (is_secret_word(&p))
            return !words[i].is_plural ? TMK_SECRET_ONE
                   : p.may_be_number   ? TMK_SECRET_OR_NUMBER
                                       : TMK_SECRET_SOME;
    }
    return TMK_SECRET_NOT;
}

/* ---- values ---- */

/* How the tokens of services begin. Names of files and packages may begin so too; where `n_run` is
 * not zero, this many letters and digits in a row have to follow, which names do not have. */
static const struct {
    const char *begin;
    size_t n_least, n_run;
} service_tokens[] = {
    {"hf_", 20, 16},   {"sk-", 20, 16},      {"eyJ", 20, 16},  {"ghp_", 20, 16},
    {"gho_", 20, 16},  {"ghu_", 20, 16},     {"ghs_", 20, 16}, {"ghr_", 20, 16},
    {"npm_", 20, 16},  {"pypi-", 20, 16},    {"gsk_", 20, 16}, {"r8_", 20, 16},
    {"xai-", 20, 16},  {"AKIA", 20, 16},     {"ASIA", 20, 16}, {"github_pat_", 20, 0},
    {"glpat-", 20, 0}, {"nvapi-", 20, 0},    {"AIza", 30, 0},  {"xoxb-", 20, 0},
    {"xoxa-", 20, 0},  {"xoxp-", 20, 0},     {"xoxr-", 20, 0}, {"xoxs-", 20, 0},
    {"xapp-", 20, 0},  {"dckr_pat_", 20, 0}, {"ya29.", 20, 0}, {"SG.", 40, 16},
};

static size_t longest_run(const char *text, size_t n)
{
    size_t longest = 0, run = 0;
    for (size_t i = 0; i < n; i++) {
        run = isalnum((unsigned char)text[i]) ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

static bool is_service_token(const char *text, size_t n)
{
    for (size_t i = 0; i < sizeof service_tokens / sizeof service_tokens[0]; i++) {
        size_t n_begin = strlen(service_tokens[i].begin);
        if (n >= service_tokens[i].n_least &&
            strncmp(text, service_tokens[i].begin, n_begin) == 0 &&
            longest_run(text + n_begin, n - n_begin) >= service_tokens[i].n_run)
            return true;
    }
    return false;
}

size_t tmk_secret_token(const char *word, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((i == 0 || !isalnum((unsigned char)word[i - 1])) && is_service_token(word + i, n - i))
            return i;
    return n;
}
