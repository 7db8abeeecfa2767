/* SPDX-License-Identifier: MIT */
/* sweep/where.c - see where.h.
 *
 * A tree in the arena, by recursive descent, one function a line of the grammar; its depth is
 * bounded. It is judged once a configuration, so nothing here needs to be fast. */
#include "sweep/where.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "kit/arena.h"
#include "sweep/params.h"

/* A row of operators becomes a tree as deep as it is long: so its length is bounded too. */
enum { MAX_DEPTH = 64, MAX_TEXT_BYTES = 4096, MAX_NUMBER_BYTES = 40 };

enum op {
    OP_NUMBER,
    OP_TEXT,
    OP_PARAM,
    OP_OR,
    OP_AND,
    OP_NOT,
    OP_NEGATE,
    OP_LESS,
    OP_LESS_EQUAL,
    OP_MORE,
    OP_MORE_EQUAL,
    OP_EQUAL,
    OP_UNEQUAL,
    OP_ADD,
    OP_SUBTRACT,
    OP_MULTIPLY,
    OP_DIVIDE,
    OP_MODULO,
};

struct node {
    enum op op;
    uint32_t at; /* byte of the text, for messages */
    uint32_t param;
    double number;
    const char *text;
    const struct node *left, *right;
};

struct tmk_where {
    const struct tmk_sweep_param *params;
    const struct node *root;
};

/* ---- reading ---- */

struct reading {
    const char *text, *at;
    const struct tmk_sweep_param *params;
    uint32_t n_params;
    struct tmk_arena *arena;
    unsigned depth;
    struct tmk_error *err;
    int rc; /* of the first failure */
};

static const struct node *read_or(struct reading *r);

/* "'NAME' WHAT", or without a name just what. */
static int fail_with(struct tmk_error *err, uint64_t at, const char *name, const char *what)
{
    int rc = tmk_fail(err, TMK_EINVAL, "%s%s%s%s", name ? "'" : "", name ? name : "",
                      name ? "' " : "", what);
    if (err)
        err->offset = at;
    return rc;
}

static const struct node *fail_at(struct reading *r, const char *at, const char *name,
                                  const char *what)
{
    if (r->rc == 0)
        r->rc = fail_with(r->err, (uint64_t)(at - r->text), name, what);
    return NULL;
}

static void skip_blanks(struct reading *r)
{
    while (isspace((unsigned char)*r->at))
        r->at++;
}

static bool is_name_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Take `word` if it comes next; one of letters must end there. */
static bool take(struct reading *r, const char *word)
{
    skip_blanks(r);
    size_t n = strlen(word);
    if (strncmp(r->at, word, n) != 0 || (is_name_byte(word[0]) && is_name_byte(r->at[n])))
        return false;
    r->at += n;
    return true;
}

static struct node *new_node(struct reading *r, enum op op, const char *at)
{
    struct node *n = tmk_arena_take(r->arena, sizeof *n);
    if (!n) {
        r->rc = TMK_ENOMEM;
        return NULL;
    }
    n->op = op;
    n->at = (uint32_t)(at - r->text);
    return n;
}

static const struct node *join(struct reading *r, enum op op, const char *at,
                               const struct node *left, const struct node *right)
{
    struct node *n =
        left && (right || op == OP_NOT || op == OP_NEGATE) ? new_node(r, op, at) : NULL;
    if (!n)
        return NULL;
    n->left = left;
    n->right = right;
    return n;
}

static const struct node *read_number(struct reading *r)
{
    char text[MAX_NUMBER_BYTES];
    const char *at = r->at;
    size_t n = strspn(at, "0123456789.");
    if ((at[n] == 'e' || at[n] == 'E') &&
        (isdigit((unsigned char)at[n + 1]) || (at[n + 1] && strchr("+-", at[n + 1]))))
        n += 2 + strspn(at + n + 2, "0123456789");
    double number;
    if (n < sizeof text) {
        memcpy(text, at, n);
        text[n] = '\0';
    }
    if (n >= sizeof text || is_name_byte(at[n]) || !tmk_param_number(text, &number))
        return fail_at(r, at, NULL, "this is no number");
    struct node *node = new_node(r, OP_NUMBER, at);
    if (node)
        node->number = number;
    r->at = at + n;
    return node;
}

static const struct node *read_text(struct reading *r)
{
    const char *at = r->at, *end = strchr(at + 1, *at);
    if (!end)
        return fail_at(r, at, NULL, "this text has no end");
    struct node *node = new_node(r, OP_TEXT, at);
    if (node && !(node->text = tmk_arena_text(r->arena, at + 1, (size_t)(end - at - 1))))
        r->rc = TMK_ENOMEM;
    r->at = end + 1;
    return node;
}

static const struct node *read_param(struct reading *r)
{
    const char *at = r->at;
    size_t n = 0;
    while (is_name_byte(at[n]))
        n++;
    int found = tmk_params_find(r->params, r->n_params, at, n);
    if (found < 0) {
        const char *name = tmk_arena_text(r->arena, at, n);
        return fail_at(r, at, name, "is no parameter (a text stands in quotes)");
    }
    struct node *node = new_node(r, OP_PARAM, at);
    if (node)
        node->param = (uint32_t)found;
    r->at = at + n;
    return node;
}

static const struct node *read_group(struct reading *r)
{
    const char *at = r->at++;
    const struct node *inside = read_or(r);
    if (inside && !take(r, ")"))
        return fail_at(r, at, NULL, "this bracket is not closed");
    return inside;
}

static const struct node *read_factor(struct reading *r)
{
    if (++r->depth > MAX_DEPTH)
        return fail_at(r, r->at, NULL, "this is nested too deep");
    skip_blanks(r);
    const char *at = r->at;
    const struct node *n;
    if (take(r, "-"))
        n = join(r, OP_NEGATE, at, read_factor(r), NULL);
    else if (isdigit((unsigned char)*at) || *at == '.')
        n = read_number(r);
    else if (*at == '\'' || *at == '"')
        n = read_text(r);
    else if (*at == '(')
        n = read_group(r);
    else if (is_name_byte(*at))
        n = read_param(r);
    else
        n = fail_at(r, at, NULL,
                    *at ? "a parameter or a number should stand here"
                        : "something is missing at the end");
    r->depth--;
    return n;
}

/* Operators that bind alike, the longer ones first. */
struct infix {
    const char *text;
    enum op op;
};
static const struct infix products[] = {
    {"*", OP_MULTIPLY}, {"/", OP_DIVIDE}, {"%", OP_MODULO}, {NULL, 0}};
static const struct infix sums[] = {{"+", OP_ADD}, {"-", OP_SUBTRACT}, {NULL, 0}};
static const struct infix comparisons[] = {
    {"<=", OP_LESS_EQUAL}, {">=", OP_MORE_EQUAL}, {"==", OP_EQUAL}, {"!=", OP_UNEQUAL},
    {"<", OP_LESS},        {">", OP_MORE},        {"=", OP_EQUAL},  {NULL, 0}};
static const struct infix ands[] = {{"and", OP_AND}, {"&&", OP_AND}, {NULL, 0}};
static const struct infix ors[] = {{"or", OP_OR}, {"||", OP_OR}, {NULL, 0}};

static bool take_one(struct reading *r, const struct infix *of, enum op *ret, const char **ret_at)
{
    skip_blanks(r);
    *ret_at = r->at;
    for (; of->text; of++)
        if (take(r, of->text)) {
            *ret = of->op;
            return true;
        }
    return false;
}

typedef const struct node *reader(struct reading *r);

static const struct node *read_row(struct reading *r, reader *part, const struct infix *of)
{
    enum op op;
    const char *at;
    const struct node *left = part(r);
    while (left && take_one(r, of, &op, &at))
        left = join(r, op, at, left, part(r));
    return left;
}

static const struct node *read_term(struct reading *r)
{
    return read_row(r, read_factor, products);
}

static const struct node *read_sum(struct reading *r)
{
    return read_row(r, read_term, sums);
}

/* a < b < c: (a < b) and (b < c). */
static const struct node *read_chain(struct reading *r)
{
    enum op op;
    const char *at;
    const struct node *left = read_sum(r), *all = NULL;
    while (left && take_one(r, comparisons, &op, &at)) {
        const struct node *right = read_sum(r);
        const struct node *both = join(r, op, at, left, right);
        all = all ? join(r, OP_AND, at, all, both) : both;
        left = right;
    }
    return left && all ? all : left;
}

static const struct node *read_not(struct reading *r)
{
    if (++r->depth > MAX_DEPTH)
        return fail_at(r, r->at, NULL, "this is nested too deep");
    skip_blanks(r);
    const char *at = r->at;
    bool is_not = take(r, "not") || (strncmp(at, "!=", 2) != 0 && take(r, "!"));
    const struct node *n = is_not ? join(r, OP_NOT, at, read_not(r), NULL) : read_chain(r);
    r->depth--;
    return n;
}

static const struct node *read_and(struct reading *r)
{
    return read_row(r, read_not, ands);
}

static const struct node *read_or(struct reading *r)
{
    return read_row(r, read_and, ors);
}

int tmk_where_parse(const char *text, const struct tmk_sweep_param *params, uint32_t n_params,
                    struct tmk_arena *a, const struct tmk_where **ret, struct tmk_error *err)
{
    struct reading r = {
        .text = text, .at = text, .params = params, .n_params = n_params, .arena = a, .err = err};
    if (strlen(text) > MAX_TEXT_BYTES)
        return tmk_fail(err, TMK_EINVAL, "a constraint may not be that long");
    struct tmk_where *w = tmk_arena_take(a, sizeof *w);
    if (!w)
        return TMK_ENOMEM;
    w->params = params;
    w->root = read_or(&r);
    skip_blanks(&r);
    if (r.rc == 0 && *r.at)
        fail_at(&r, r.at, NULL, "this is not expected here");
    if (r.rc == 0 && !w->root)
        r.rc = TMK_ENOMEM;
    if (r.rc == 0)
        *ret = w;
    return r.rc;
}

/* ---- judging ---- */

struct value {
    const char *text; /* NULL: a number */
    double number;
};

struct judging {
    const struct tmk_sweep_param *params;
    const uint32_t *choice;
    struct tmk_error *err;
    int rc;
};

static struct value judge(struct judging *j, const struct node *n);

static struct value complain(struct judging *j, const struct node *n, const char *name,
                             const char *what)
{
    if (j->rc == 0)
        j->rc = fail_with(j->err, n->at, name, what);
    return (struct value){0};
}

static double number_at(struct judging *j, const struct node *n)
{
    struct value v = judge(j, n);
    if (v.text)
        complain(j, n, v.text, "is no number");
    return v.number;
}

static struct value param_value(struct judging *j, const struct node *n)
{
    const struct tmk_sweep_param *p = &j->params[n->param];
    const char *text = p->values[j->choice[n->param]];
    double number;
    if (tmk_param_number(text, &number))
        return (struct value){.number = number};
    return (struct value){.text = text};
}

static struct value truth(bool holds)
{
    return (struct value){.number = holds};
}

static struct value compare_same(struct judging *j, const struct node *n)
{
    struct value a = judge(j, n->left), b = judge(j, n->right);
    bool same =
        a.text && b.text ? strcmp(a.text, b.text) == 0 : !a.text && !b.text && a.number == b.number;
    return truth(same == (n->op == OP_EQUAL));
}

static struct value divide(struct judging *j, const struct node *n)
{
    double a = number_at(j, n->left), b = number_at(j, n->right);
    if (b == 0)
        return complain(j, n, NULL, "this divides by 0");
    return (struct value){.number = n->op == OP_DIVIDE ? a / b : fmod(a, b)};
}

static struct value calculate(struct judging *j, const struct node *n)
{
    double a = number_at(j, n->left), b = number_at(j, n->right);
    switch (n->op) {
    case OP_LESS:
        return truth(a < b);
    case OP_LESS_EQUAL:
        return truth(a <= b);
    case OP_MORE:
        return truth(a > b);
    case OP_MORE_EQUAL:
        return truth(a >= b);
    case OP_ADD:
        return (struct value){.number = a + b};
    case OP_SUBTRACT:
        return (struct value){.number = a - b};
    default:
        return (struct value){.number = a * b};
    }
}

static struct value judge(struct judging *j, const struct node *n)
{
    if (j->rc < 0)
        return (struct value){0};
    switch (n->op) {
    case OP_NUMBER:
        return (struct value){.number = n->number};
    case OP_TEXT:
        return (struct value){.text = n->text};
    case OP_PARAM:
        return param_value(j, n);
    case OP_OR:
        return truth(number_at(j, n->left) != 0 || number_at(j, n->right) != 0);
    case OP_AND:
        return truth(number_at(j, n->left) != 0 && number_at(j, n->right) != 0);
    case OP_NOT:
        return truth(number_at(j, n->left) == 0);
    case OP_NEGATE:
        return (struct value){.number = -number_at(j, n->left)};
    case OP_EQUAL:
    case OP_UNEQUAL:
        return compare_same(j, n);
    case OP_DIVIDE:
    case OP_MODULO:
        return divide(j, n);
    default:
        return calculate(j, n);
    }
}

int tmk_where_holds(const struct tmk_where *w, const uint32_t *choice, struct tmk_error *err)
{
    struct judging j = {.params = w->params, .choice = choice, .err = err};
    double number = number_at(&j, w->root);
    return j.rc < 0 ? j.rc : number != 0;
}
