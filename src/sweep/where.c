/* SPDX-License-Identifier: MIT */
/* sweep/where.c - see where.h.
 *
 * A recursive descent parser, with one function for each line of the grammar, builds a tree of
 * bounded depth in the arena. The tree is judged once for each configuration, so nothing here needs
 * to be fast. */
#include "sweep/where.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "kit/arena.h"
#include "kit/language.h"
#include "sweep/params.h"

/* A row of operators becomes a tree as deep as the row is long, so its length is bounded too. */
enum { MAX_DEPTH = 64, MAX_TEXT_BYTES = 4096, MAX_NUMBER_BYTES = 40 };

enum where_op {
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

struct where_node {
    enum where_op op;
    uint32_t at; /* byte of the text, for messages */
    uint32_t param;
    double number;
    const char *text;
    const struct where_node *left, *right;
};

struct tmk_where {
    const struct tmk_sweep_param *params;
    const struct where_node *root;
};

/* ---- reading ---- */

struct where_reading {
    const char *text, *at;
    const struct tmk_sweep_param *params;
    uint32_t n_params;
    struct tmk_arena *arena;
    unsigned depth;
    struct tmk_error *err;
    int rc; /* result of the first failure */
};

static const struct where_node *read_or(struct where_reading *r);

/* Fail with "'NAME' WHAT", or without a name with WHAT alone. */
static int fail_with(struct tmk_error *err, uint64_t at, const char *name, const char *what)
{
    int rc = tmk_fail(err, TMK_EINVAL, "%s%s%s%s", name ? "'" : "", name ? name : "",
                      name ? "' " : "", _(what));
    if (err)
        err->offset = at;
    return rc;
}

static const struct where_node *fail_at(struct where_reading *r, const char *at, const char *name,
                                        const char *what)
{
    if (r->rc == 0)
        r->rc = fail_with(r->err, (uint64_t)(at - r->text), name, what);
    return NULL;
}

static void skip_where_blanks(struct where_reading *r)
{
    while (isspace((unsigned char)*r->at))
        r->at++;
}

static bool is_name_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Take `word` if it comes next; a word of letters must end there. */
static bool take_word(struct where_reading *r, const char *word)
{
    skip_where_blanks(r);
    size_t n = strlen(word);
    if (strncmp(r->at, word, n) != 0 || (is_name_byte(word[0]) && is_name_byte(r->at[n])))
        return false;
    r->at += n;
    return true;
}

static struct where_node *new_node(struct where_reading *r, enum where_op op, const char *at)
{
    struct where_node *n = tmk_arena_take(r->arena, sizeof *n);
    if (!n) {
        r->rc = TMK_ENOMEM;
        return NULL;
    }
    n->op = op;
    n->at = (uint32_t)(at - r->text);
    return n;
}

static const struct where_node *join_nodes(struct where_reading *r, enum where_op op,
                                           const char *at, const struct where_node *left,
                                           const struct where_node *right)
{
    struct where_node *n =
        left && (right || op == OP_NOT || op == OP_NEGATE) ? new_node(r, op, at) : NULL;
    if (!n)
        return NULL;
    n->left = left;
    n->right = right;
    return n;
}

static const struct where_node *read_number_node(struct where_reading *r)
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
    struct where_node *node = new_node(r, OP_NUMBER, at);
    if (node)
        node->number = number;
    r->at = at + n;
    return node;
}

static const struct where_node *read_text(struct where_reading *r)
{
    const char *at = r->at, *end = strchr(at + 1, *at);
    if (!end)
        return fail_at(r, at, NULL, "this text has no end");
    struct where_node *node = new_node(r, OP_TEXT, at);
    if (node && !(node->text = tmk_arena_text(r->arena, at + 1, (size_t)(end - at - 1))))
        r->rc = TMK_ENOMEM;
    r->at = end + 1;
    return node;
}

static const struct where_node *read_param_node(struct where_reading *r)
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
    struct where_node *node = new_node(r, OP_PARAM, at);
    if (node)
        node->param = (uint32_t)found;
    r->at = at + n;
    return node;
}

static const struct where_node *read_group(struct where_reading *r)
{
    const char *at = r->at++;
    const struct where_node *inside = read_or(r);
    if (inside && !take_word(r, ")"))
        return fail_at(r, at, NULL, "this bracket is not closed");
    return inside;
}

static const struct where_node *read_factor(struct where_reading *r)
{
    if (++r->depth > MAX_DEPTH)
        return fail_at(r, r->at, NULL, "this is nested too deep");
    skip_where_blanks(r);
    const char *at = r->at;
    const struct where_node *n;
    if (take_word(r, "-"))
        n = join_nodes(r, OP_NEGATE, at, read_factor(r), NULL);
    else if (isdigit((unsigned char)*at) || *at == '.')
        n = read_number_node(r);
    else if (*at == '\'' || *at == '"')
        n = read_text(r);
    else if (*at == '(')
        n = read_group(r);
    else if (is_name_byte(*at))
        n = read_param_node(r);
    else
        n = fail_at(r, at, NULL,
                    *at ? "a parameter or a number should stand here"
                        : "something is missing at the end");
    r->depth--;
    return n;
}

/* Operators of one precedence, the longer ones first. */
struct where_infix {
    const char *text;
    enum where_op op;
};
static const struct where_infix products[] = {
    {"*", OP_MULTIPLY}, {"/", OP_DIVIDE}, {"%", OP_MODULO}, {NULL, 0}};
static const struct where_infix sums[] = {{"+", OP_ADD}, {"-", OP_SUBTRACT}, {NULL, 0}};
static const struct where_infix comparisons[] = {
    {"<=", OP_LESS_EQUAL}, {">=", OP_MORE_EQUAL}, {"==", OP_EQUAL}, {"!=", OP_UNEQUAL},
    {"<", OP_LESS},        {">", OP_MORE},        {"=", OP_EQUAL},  {NULL, 0}};
static const struct where_infix ands[] = {{"and", OP_AND}, {"&&", OP_AND}, {NULL, 0}};
static const struct where_infix ors[] = {{"or", OP_OR}, {"||", OP_OR}, {NULL, 0}};

static bool take_one(struct where_reading *r, const struct where_infix *of, enum where_op *ret,
                     const char **ret_at)
{
    skip_where_blanks(r);
    *ret_at = r->at;
    for (; of->text; of++)
        if (take_word(r, of->text)) {
            *ret = of->op;
            return true;
        }
    return false;
}

typedef const struct where_node *reader(struct where_reading *r);

static const struct where_node *read_infix_row(struct where_reading *r, reader *part,
                                               const struct where_infix *of)
{
    enum where_op op;
    const char *at;
    const struct where_node *left = part(r);
    while (left && take_one(r, of, &op, &at))
        left = join_nodes(r, op, at, left, part(r));
    return left;
}

static const struct where_node *read_term(struct where_reading *r)
{
    return read_infix_row(r, read_factor, products);
}

static const struct where_node *read_sum(struct where_reading *r)
{
    return read_infix_row(r, read_term, sums);
}

/* Read a chain: a < b < c means (a < b) and (b < c). */
static const struct where_node *read_chain(struct where_reading *r)
{
    enum where_op op;
    const char *at;
    const struct where_node *left = read_sum(r), *all = NULL;
    while (left && take_one(r, comparisons, &op, &at)) {
        const struct where_node *right = read_sum(r);
        const struct where_node *both = join_nodes(r, op, at, left, right);
        all = all ? join_nodes(r, OP_AND, at, all, both) : both;
        left = right;
    }
    return left && all ? all : left;
}

static const struct where_node *read_not(struct where_reading *r)
{
    if (++r->depth > MAX_DEPTH)
        return fail_at(r, r->at, NULL, "this is nested too deep");
    skip_where_blanks(r);
    const char *at = r->at;
    bool is_not = take_word(r, "not") || (strncmp(at, "!=", 2) != 0 && take_word(r, "!"));
    const struct where_node *n =
        is_not ? join_nodes(r, OP_NOT, at, read_not(r), NULL) : read_chain(r);
    r->depth--;
    return n;
}

static const struct where_node *read_and(struct where_reading *r)
{
    return read_infix_row(r, read_not, ands);
}

static const struct where_node *read_or(struct where_reading *r)
{
    return read_infix_row(r, read_and, ors);
}

int tmk_where_parse(const char *text, const struct tmk_sweep_param *params, uint32_t n_params,
                    struct tmk_arena *a, const struct tmk_where **ret, struct tmk_error *err)
{
    struct where_reading r = {
        .text = text, .at = text, .params = params, .n_params = n_params, .arena = a, .err = err};
    if (strlen(text) > MAX_TEXT_BYTES)
        return tmk_fail(err, TMK_EINVAL, "a constraint may not be that long");
    struct tmk_where *w = tmk_arena_take(a, sizeof *w);
    if (!w)
        return TMK_ENOMEM;
    w->params = params;
    w->root = read_or(&r);
    skip_where_blanks(&r);
    if (r.rc == 0 && *r.at)
        fail_at(&r, r.at, NULL, "this is not expected here");
    if (r.rc == 0 && !w->root)
        r.rc = TMK_ENOMEM;
    if (r.rc == 0)
        *ret = w;
    return r.rc;
}

/* ---- judging ---- */

struct where_value {
    const char *text; /* NULL: a number */
    double number;
};

struct where_judging {
    const struct tmk_sweep_param *params;
    const uint32_t *choice;
    struct tmk_error *err;
    int rc;
};

static struct where_value judge_node(struct where_judging *j, const struct where_node *n);

static struct where_value complain_about_node(struct where_judging *j, const struct where_node *n,
                                              const char *name, const char *what)
{
    if (j->rc == 0)
        j->rc = fail_with(j->err, n->at, name, what);
    return (struct where_value){0};
}

static double node_number(struct where_judging *j, const struct where_node *n)
{
    struct where_value v = judge_node(j, n);
    if (v.text)
        complain_about_node(j, n, v.text, "is no number");
    return v.number;
}

static struct where_value param_value(struct where_judging *j, const struct where_node *n)
{
    const struct tmk_sweep_param *p = &j->params[n->param];
    const char *text = p->values[j->choice[n->param]];
    double number;
    if (tmk_param_number(text, &number))
        return (struct where_value){.number = number};
    return (struct where_value){.text = text};
}

static struct where_value truth_value(bool holds)
{
    return (struct where_value){.number = holds};
}

static struct where_value compare_same(struct where_judging *j, const struct where_node *n)
{
    struct where_value a = judge_node(j, n->left), b = judge_node(j, n->right);
    bool same =
        a.text && b.text ? strcmp(a.text, b.text) == 0 : !a.text && !b.text && a.number == b.number;
    return truth_value(same == (n->op == OP_EQUAL));
}

static struct where_value divide_values(struct where_judging *j, const struct where_node *n)
{
    double a = node_number(j, n->left), b = node_number(j, n->right);
    if (b == 0)
        return complain_about_node(j, n, NULL, "this divides by 0");
    return (struct where_value){.number = n->op == OP_DIVIDE ? a / b : fmod(a, b)};
}

static struct where_value calculate_node(struct where_judging *j, const struct where_node *n)
{
    double a = node_number(j, n->left), b = node_number(j, n->right);
    switch (n->op) {
    case OP_LESS:
        return truth_value(a < b);
    case OP_LESS_EQUAL:
        return truth_value(a <= b);
    case OP_MORE:
        return truth_value(a > b);
    case OP_MORE_EQUAL:
        return truth_value(a >= b);
    case OP_ADD:
        return (struct where_value){.number = a + b};
    case OP_SUBTRACT:
        return (struct where_value){.number = a - b};
    default:
        return (struct where_value){.number = a * b};
    }
}

static struct where_value judge_node(struct where_judging *j, const struct where_node *n)
{
    if (j->rc < 0)
        return (struct where_value){0};
    switch (n->op) {
    case OP_NUMBER:
        return (struct where_value){.number = n->number};
    case OP_TEXT:
        return (struct where_value){.text = n->text};
    case OP_PARAM:
        return param_value(j, n);
    case OP_OR:
        return truth_value(node_number(j, n->left) != 0 || node_number(j, n->right) != 0);
    case OP_AND:
        return truth_value(node_number(j, n->left) != 0 && node_number(j, n->right) != 0);
    case OP_NOT:
        return truth_value(node_number(j, n->left) == 0);
    case OP_NEGATE:
        return (struct where_value){.number = -node_number(j, n->left)};
    case OP_EQUAL:
    case OP_UNEQUAL:
        return compare_same(j, n);
    case OP_DIVIDE:
    case OP_MODULO:
        return divide_values(j, n);
    default:
        return calculate_node(j, n);
    }
}

int tmk_where_holds(const struct tmk_where *w, const uint32_t *choice, struct tmk_error *err)
{
    struct where_judging j = {.params = w->params, .choice = choice, .err = err};
    double number = node_number(&j, w->root);
    return j.rc < 0 ? j.rc : number != 0;
}
