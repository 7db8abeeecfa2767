/* SPDX-License-Identifier: MIT */
/* record/native/unwind.c - see unwind.h. It reads call frame information as in the DWARF
 * standard, 6.4, and the "Exception Frames" chapter of the Linux Standard Base.
 *
 * .eh_frame_hdr is a table, sorted by address, of the frame descriptions (FDE) in .eh_frame; each
 * names a common part (CIE) and is a little program that builds, instruction by instruction of the
 * function, rows of rules. We run it up to the row of our address.
 *
 * Expressions instead of plain offsets occur in three places: frames that align their stack (the
 * CFA is stored in the frame, registers are saved relative to the frame pointer), the PLT (the CFA
 * depends on the address), and the kernel's signal frame (which is recognised by its code, as its
 * layout is fixed for ever). The first two are evaluated while the rule is made, with registers as
 * unknowns; an expression that is not reg + offset, or one load from there, has no rule. */
#include "record/native/unwind.h"

#include <string.h>

#include "base/bytes.h"

enum { MAX_REMEMBERED = 8, MAX_INSTRUCTIONS = 4096, MAX_EXPRESSION = 64, MAX_TERMS = 8 };

/* ---- registers ---- */

enum { NO_REG = 255 };

/* Our index + 1 for DWARF's register numbers; 0: not followed. */
#if defined(__x86_64__)
static const uint8_t reg_of_dwarf[] = {
    [3] = 1 + TMK_REG_RBX,  [6] = 1 + TMK_REG_FP,   [7] = 1 + TMK_REG_SP,   [10] = 1 + TMK_REG_R10,
    [12] = 1 + TMK_REG_R12, [13] = 1 + TMK_REG_R13, [14] = 1 + TMK_REG_R14, [15] = 1 + TMK_REG_R15,
};
enum { DWARF_RETURN = 16 };
#elif defined(__aarch64__)
static const uint8_t reg_of_dwarf[] = {[29] = 1 + TMK_REG_FP, [31] = 1 + TMK_REG_SP};
enum { DWARF_RETURN = 30 };
#endif

static uint8_t reg_index(uint64_t dwarf)
{
    if (dwarf >= sizeof reg_of_dwarf || reg_of_dwarf[dwarf] == 0)
        return NO_REG;
    return (uint8_t)(reg_of_dwarf[dwarf] - 1);
}

/* ---- reading ---- */

static int64_t view_sleb(struct tmk_view *v)
{
    uint64_t value = 0;
    for (unsigned shift = 0; v->at < v->end && shift < 64; shift += 7) {
        uint8_t byte = *v->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            if ((byte & 0x40) && shift + 7 < 64)
                value |= ~(uint64_t)0 << (shift + 7);
            return (int64_t)value;
        }
    }
    return (int64_t)tmk_view_fail(v);
}

static uint64_t view_fixed(struct tmk_view *v, uint32_t n_bytes)
{
    struct tmk_view part = tmk_view_take(v, n_bytes);
    uint64_t value = 0;
    if (!part.bad)
        memcpy(&value, part.at, n_bytes);
    return value;
}

static int64_t sign_extend(uint64_t value, uint32_t n_bytes)
{
    unsigned shift = 64 - 8 * n_bytes;
    return (int64_t)(value << shift) >> shift;
}

/* Encodings of pointers (DW_EH_PE_*): the low half is the format, the high half the base. */
enum { PE_FORMAT = 0x0f, PE_FROM = 0x70, PE_PCREL = 0x10, PE_DATAREL = 0x30, PE_INDIRECT = 0x80 };
enum { PE_TABLE = 0x3b }; /* the one that all linkers sort: 4 bytes, signed, from the header on */

static uint64_t view_format(struct tmk_view *v, uint8_t encoding)
{
    switch (encoding & PE_FORMAT) {
    case 0x00: /* absptr */
    case 0x04:
    case 0x0c:
        return view_fixed(v, 8);
    case 0x01:
        return tmk_view_varint(v);
    case 0x02:
        return view_fixed(v, 2);
    case 0x03:
        return view_fixed(v, 4);
    case 0x09:
        return (uint64_t)view_sleb(v);
    case 0x0a:
        return (uint64_t)sign_extend(view_fixed(v, 2), 2);
    case 0x0b:
        return (uint64_t)sign_extend(view_fixed(v, 4), 4);
    default:
        return tmk_view_fail(v);
    }
}

static uint64_t view_pointer(struct tmk_view *v, uint8_t encoding)
{
    uintptr_t here = (uintptr_t)v->at;
    uint64_t value = view_format(v, encoding);
    if ((encoding & PE_FROM) == PE_PCREL)
        return value + here;
    return (encoding & (PE_FROM | PE_INDIRECT)) == 0 ? value : tmk_view_fail(v);
}

/* ---- the description of one function ---- */

struct frame_description {
    uintptr_t start, end;          /* the function */
    struct tmk_view first, second; /* programs of CIE and FDE */
    uint64_t code_unit;
    int64_t data_unit;
    uint8_t encoding; /* of pointers in the FDE */
    bool has_extra;   /* a length and that many bytes come before its program */
};

/* The record at `at`: a length and that many bytes, inside the file's table. Bad when it makes no
 * sense. */
static struct tmk_view record_at(const struct tmk_mapped_file *m, uintptr_t at)
{
    struct tmk_view bad = {.bad = true};
    if (at < m->eh_start || at >= m->eh_end || m->eh_end - at < 8)
        return bad;
    struct tmk_view v = tmk_view_of((const void *)at, m->eh_end - at);
    uint64_t n = view_fixed(&v, 4);
    return n < 4 || n == UINT32_MAX ? bad : tmk_view_take(&v, n);
}

/* Read the letters of the augmentation, of which 'R' matters. */
static bool read_augmentation(struct tmk_view *v, const char *letters, struct frame_description *d)
{
    d->has_extra = letters[0] == 'z';
    d->encoding = 0;
    if (letters[0] == '\0')
        return true;
    if (letters[0] != 'z')
        return false;
    struct tmk_view extra = tmk_view_take(v, tmk_view_varint(v));
    for (const char *c = letters + 1; *c; c++) {
        if (*c == 'R')
            d->encoding = (uint8_t)view_fixed(&extra, 1);
        else if (*c == 'L')
            (void)view_fixed(&extra, 1);
        else if (*c == 'P')
            (void)view_format(&extra, (uint8_t)view_fixed(&extra, 1));
        else if (*c != 'S' && *c != 'B')
            return false;
    }
    return !extra.bad;
}

static bool read_common(const struct tmk_mapped_file *m, uintptr_t at, struct frame_description *d)
{
    struct tmk_view v = record_at(m, at);
    if (v.bad || view_fixed(&v, 4) != 0)
        return false;
    uint64_t version = view_fixed(&v, 1);
    const uint8_t *letters_end = memchr(v.at, 0, tmk_view_left(&v));
    if ((version != 1 && version != 3) || !letters_end)
        return false;
    const char *letters = (const char *)v.at;
    v.at = letters_end + 1;
    d->code_unit = tmk_view_varint(&v);
    d->data_unit = view_sleb(&v);
    uint64_t return_reg = version == 1 ? view_fixed(&v, 1) : tmk_view_varint(&v);
    if (return_reg != DWARF_RETURN || !read_augmentation(&v, letters, d))
        return false;
    d->first = v;
    return !v.bad;
}

static bool read_description(const struct tmk_mapped_file *m, uintptr_t at,
                             struct frame_description *d)
{
    struct tmk_view v = record_at(m, at);
    if (v.bad)
        return false;
    uintptr_t common_from = (uintptr_t)v.at;
    uint64_t distance = view_fixed(&v, 4);
    if (v.bad || distance == 0 || !read_common(m, common_from - distance, d))
        return false;
    d->start = view_pointer(&v, d->encoding);
    d->end = d->start + view_format(&v, d->encoding & PE_FORMAT);
    if (d->has_extra)
        (void)tmk_view_take(&v, tmk_view_varint(&v));
    d->second = v;
    return !v.bad;
}

/* Look `pc` up in the sorted table; returns the address of its FDE, 0 when there is none. */
static uintptr_t find_description(const struct tmk_mapped_file *m, uintptr_t pc)
{
    if (m->eh_header < m->eh_start || m->eh_header >= m->eh_end)
        return 0;
    struct tmk_view v = tmk_view_of((const void *)m->eh_header, m->eh_end - m->eh_header);
    uint64_t version = view_fixed(&v, 1);
    uint8_t eh_encoding = (uint8_t)view_fixed(&v, 1), count_encoding = (uint8_t)view_fixed(&v, 1);
    uint8_t table_encoding = (uint8_t)view_fixed(&v, 1);
    (void)view_format(&v, eh_encoding);
    uint64_t n = view_format(&v, count_encoding);
    if (v.bad || version != 1 || table_encoding != PE_TABLE || n > tmk_view_left(&v) / 8)
        return 0;
    int64_t wanted = (int64_t)(pc - m->eh_header);
    uint64_t low = 0, high = n; /* the first entry beyond `wanted` is in [low, high] */
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if ((int32_t)tmk_load_u32(v.at + middle * 8) <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return 0;
    return m->eh_header + (uintptr_t)(int64_t)(int32_t)tmk_load_u32(v.at + (low - 1) * 8 + 4);
}

/* ---- expressions ---- */

struct cfi_term { /* a number, a register plus a number, or what is stored there */
    uint8_t reg;  /* NO_REG: a number */
    bool deref;
    int64_t offset;
};

struct cfi_evaluation {
    struct cfi_term terms[MAX_TERMS];
    uint32_t n;
    uintptr_t pc;
};

static bool push_term(struct cfi_evaluation *e, uint8_t reg, int64_t offset)
{
    if (e->n == MAX_TERMS)
        return false;
    e->terms[e->n++] = (struct cfi_term){.reg = reg, .offset = offset};
    return true;
}

static bool push_register(struct cfi_evaluation *e, uint64_t dwarf, int64_t offset)
{
#if defined(__x86_64__)
    if (dwarf == DWARF_RETURN) /* "rip": where we are */
        return push_term(e, NO_REG, (int64_t)(e->pc + (uint64_t)offset));
#endif
    uint8_t reg = reg_index(dwarf);
    return reg != NO_REG && push_term(e, reg, offset);
}

enum {
    OP_DEREF = 0x06,
    OP_CONST1U = 0x08,
    OP_CONST1S = 0x09,
    OP_CONST2U = 0x0a,
    OP_CONST2S = 0x0b,
    OP_AND = 0x1a,
    OP_PLUS = 0x22,
    OP_PLUS_UCONST = 0x23,
    OP_SHL = 0x24,
    OP_GE = 0x2a,
    OP_LIT0 = 0x30,
    OP_LIT31 = 0x4f,
    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f,
    OP_BREGX = 0x92,
};

/* Combine the two topmost terms into one. */
static bool combine_terms(struct cfi_evaluation *e, uint8_t op)
{
    if (e->n < 2)
        return false;
    struct cfi_term b = e->terms[--e->n], *a = &e->terms[e->n - 1];
    if (a->deref || b.deref || b.reg != NO_REG || (a->reg != NO_REG && op != OP_PLUS))
        return false;
    if (op == OP_PLUS)
        a->offset += b.offset;
    else if (op == OP_AND)
        a->offset &= b.offset;
    else if (op == OP_GE)
        a->offset = a->offset >= b.offset;
    else if (b.offset >= 0 && b.offset < 64)
        a->offset = (int64_t)((uint64_t)a->offset << b.offset);
    else
        return false;
    return true;
}

static bool run_operation(struct cfi_evaluation *e, struct tmk_view *v, uint8_t op)
{
    if (op >= OP_LIT0 && op <= OP_LIT31)
        return push_term(e, NO_REG, op - OP_LIT0);
    if (op >= OP_BREG0 && op <= OP_BREG31)
        return push_register(e, (uint64_t)(op - OP_BREG0), view_sleb(v));
    struct cfi_term *top = e->n ? &e->terms[e->n - 1] : NULL;
    switch (op) {
    case OP_BREGX: {
        uint64_t dwarf = tmk_view_varint(v);
        return push_register(e, dwarf, view_sleb(v));
    }
    case OP_CONST1U:
        return push_term(e, NO_REG, (int64_t)view_fixed(v, 1));
    case OP_CONST1S:
        return push_term(e, NO_REG, sign_extend(view_fixed(v, 1), 1));
    case OP_CONST2U:
        return push_term(e, NO_REG, (int64_t)view_fixed(v, 2));
    case OP_CONST2S:
        return push_term(e, NO_REG, sign_extend(view_fixed(v, 2), 2));
    case OP_PLUS_UCONST:
        if (!top || top->deref)
            return false;
        top->offset += (int64_t)tmk_view_varint(v);
        return true;
    case OP_DEREF:
        if (!top || top->deref || top->reg == NO_REG)
            return false;
        top->deref = true;
        return true;
    case OP_AND:
    case OP_PLUS:
    case OP_SHL:
    case OP_GE:
        return combine_terms(e, op);
    default:
        return false;
    }
}

static bool evaluate_expression(struct tmk_view v, uintptr_t pc, struct cfi_term *ret)
{
    struct cfi_evaluation e = {.pc = pc};
    for (int i = 0; v.at < v.end && i < MAX_EXPRESSION; i++)
        if (!run_operation(&e, &v, *v.at++))
            return false;
    if (v.bad || e.n != 1 || e.terms[0].reg == NO_REG)
        return false;
    *ret = e.terms[0];
    return true;
}

/* ---- the program ---- */

enum how { SAME, AT_CFA, AT_REGISTER, LOST, STRANGE };

struct saved_place {
    uint8_t how;
    uint8_t reg;
    int64_t offset;
};

enum { PLACE_PC, PLACE_FP, N_PLACES };

struct cfi_row {
    struct cfi_term cfa;
    bool is_strange; /* the CFA cannot be expressed */
    struct saved_place places[N_PLACES];
};

struct cfi_machine {
    const struct frame_description *d;
    struct cfi_row row, initial;
    struct cfi_row remembered[MAX_REMEMBERED];
    uint32_t n_remembered;
    uintptr_t at, pc;
};

enum {
    CFA_SET_LOC = 0x01,
    CFA_ADVANCE_LOC1 = 0x02,
    CFA_ADVANCE_LOC2 = 0x03,
    CFA_ADVANCE_LOC4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER_STATE = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEF_CFA = 0x0c,
    CFA_DEF_CFA_REGISTER = 0x0d,
    CFA_DEF_CFA_OFFSET = 0x0e,
    CFA_DEF_CFA_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SF = 0x11,
    CFA_DEF_CFA_SF = 0x12,
    CFA_DEF_CFA_OFFSET_SF = 0x13,
    CFA_VAL_OFFSET = 0x14,
    CFA_VAL_OFFSET_SF = 0x15,
    CFA_VAL_EXPRESSION = 0x16,
    CFA_NEGATE_RA_STATE = 0x2d, /* aarch64: the return address is signed from here on, or not */
    CFA_GNU_ARGS_SIZE = 0x2e,
    CFA_GNU_NEGATIVE_OFFSET = 0x2f,
};

/* The place of a register that we follow; N_PLACES: we do not follow it. */
static uint32_t place_index(uint64_t dwarf)
{
    if (dwarf == DWARF_RETURN)
        return PLACE_PC;
    return reg_index(dwarf) == TMK_REG_FP ? PLACE_FP : N_PLACES;
}

static void set_place(struct cfi_machine *m, uint64_t dwarf, struct saved_place place)
{
    uint32_t i = place_index(dwarf);
    if (i < N_PLACES)
        m->row.places[i] = place;
}

static void set_offset(struct cfi_machine *m, uint64_t dwarf, int64_t factored)
{
    set_place(m, dwarf, (struct saved_place){.how = AT_CFA, .offset = factored * m->d->data_unit});
}

static void restore_place(struct cfi_machine *m, uint64_t dwarf)
{
    uint32_t i = place_index(dwarf);
    if (i < N_PLACES)
        m->row.places[i] = m->initial.places[i];
}

static void set_cfa(struct cfi_machine *m, uint64_t dwarf, int64_t offset)
{
    m->row.cfa = (struct cfi_term){.reg = reg_index(dwarf), .offset = offset};
    m->row.is_strange = m->row.cfa.reg == NO_REG;
}

static void set_cfa_expression(struct cfi_machine *m, struct tmk_view expression)
{
    m->row.is_strange = !evaluate_expression(expression, m->pc, &m->row.cfa);
}

static void set_expression(struct cfi_machine *m, uint64_t dwarf, struct tmk_view expression)
{
    struct cfi_term where;
    struct saved_place place = {.how = STRANGE};
    if (evaluate_expression(expression, m->pc, &where) && !where.deref)
        place = (struct saved_place){.how = AT_REGISTER, .reg = where.reg, .offset = where.offset};
    set_place(m, dwarf, place);
}

static bool remember_row(struct cfi_machine *m)
{
    if (m->n_remembered == MAX_REMEMBERED)
        return false;
    m->remembered[m->n_remembered++] = m->row;
    return true;
}

static bool recall_row(struct cfi_machine *m)
{
    if (m->n_remembered == 0)
        return false;
    m->row = m->remembered[--m->n_remembered];
    return true;
}

/* Run an instruction about the CFA; false: it is not one. */
static bool run_cfa(struct cfi_machine *m, struct tmk_view *v, uint8_t op)
{
    uint64_t reg;
    switch (op) {
    case CFA_DEF_CFA:
        reg = tmk_view_varint(v);
        set_cfa(m, reg, (int64_t)tmk_view_varint(v));
        return true;
    case CFA_DEF_CFA_SF:
        reg = tmk_view_varint(v);
        set_cfa(m, reg, view_sleb(v) * m->d->data_unit);
        return true;
    case CFA_DEF_CFA_REGISTER:
        set_cfa(m, tmk_view_varint(v), m->row.cfa.offset);
        return true;
    case CFA_DEF_CFA_OFFSET:
        m->row.cfa.offset = (int64_t)tmk_view_varint(v);
        return true;
    case CFA_DEF_CFA_OFFSET_SF:
        m->row.cfa.offset = view_sleb(v) * m->d->data_unit;
        return true;
    case CFA_DEF_CFA_EXPRESSION:
        set_cfa_expression(m, tmk_view_take(v, tmk_view_varint(v)));
        return true;
    default:
        return false;
    }
}

/* Run an instruction about one register; false: it is not one. */
static bool run_register(struct cfi_machine *m, struct tmk_view *v, uint8_t op)
{
    if (op < CFA_OFFSET_EXTENDED || (op > CFA_REGISTER && op < CFA_EXPRESSION))
        return false;
    uint64_t reg = tmk_view_varint(v);
    switch (op) {
    case CFA_OFFSET_EXTENDED:
        set_offset(m, reg, (int64_t)tmk_view_varint(v));
        return true;
    case CFA_OFFSET_EXTENDED_SF:
        set_offset(m, reg, view_sleb(v));
        return true;
    case CFA_GNU_NEGATIVE_OFFSET:
        set_offset(m, reg, -(int64_t)tmk_view_varint(v));
        return true;
    case CFA_RESTORE_EXTENDED:
        restore_place(m, reg);
        return true;
    case CFA_UNDEFINED:
        set_place(m, reg, (struct saved_place){.how = LOST});
        return true;
    case CFA_SAME_VALUE:
        set_place(m, reg, (struct saved_place){.how = SAME});
        return true;
    case CFA_EXPRESSION:
        set_expression(m, reg, tmk_view_take(v, tmk_view_varint(v)));
        return true;
    case CFA_VAL_EXPRESSION:
        (void)tmk_view_take(v, tmk_view_varint(v));
        set_place(m, reg, (struct saved_place){.how = STRANGE});
        return true;
    case CFA_REGISTER:
    case CFA_VAL_OFFSET:
    case CFA_VAL_OFFSET_SF:
        (void)view_sleb(v);
        set_place(m, reg, (struct saved_place){.how = STRANGE});
        return true;
    default:
        return false;
    }
}

/* The address at which the next row begins; 0: the instruction says nothing about it. */
static uintptr_t next_address(const struct cfi_machine *m, struct tmk_view *v, uint8_t op)
{
    switch (op) {
    case CFA_SET_LOC:
        return view_pointer(v, m->d->encoding);
    case CFA_ADVANCE_LOC1:
        return m->at + view_fixed(v, 1) * m->d->code_unit;
    case CFA_ADVANCE_LOC2:
        return m->at + view_fixed(v, 2) * m->d->code_unit;
    case CFA_ADVANCE_LOC4:
        return m->at + view_fixed(v, 4) * m->d->code_unit;
    default:
        return (op & 0xc0) == 0x40 ? m->at + (op & 0x3f) * m->d->code_unit : 0;
    }
}

static bool run_other(struct cfi_machine *m, struct tmk_view *v, uint8_t op)
{
    if ((op & 0xc0) == 0x80) {
        set_offset(m, op & 0x3f, (int64_t)tmk_view_varint(v));
        return true;
    }
    if ((op & 0xc0) == 0xc0) {
        restore_place(m, op & 0x3f);
        return true;
    }
    switch (op) {
    case 0: /* nop */
    case CFA_NEGATE_RA_STATE:
        return true;
    case CFA_GNU_ARGS_SIZE:
        (void)tmk_view_varint(v);
        return true;
    case CFA_REMEMBER_STATE:
        return remember_row(m);
    case CFA_RESTORE_STATE:
        return recall_row(m);
    default:
        return run_cfa(m, v, op) || run_register(m, v, op);
    }
}

/* Run one program up to the row of pc. */
static bool run_program(struct cfi_machine *m, struct tmk_view v)
{
    for (int i = 0; v.at < v.end; i++) {
        if (i == MAX_INSTRUCTIONS)
            return false;
        uint8_t op = *v.at++;
        uintptr_t next = next_address(m, &v, op);
        if (next > m->pc)
            return !v.bad;
        if (next)
            m->at = next;
        else if (!run_other(m, &v, op))
            return false;
    }
    return !v.bad;
}

/* ---- the row as a rule ---- */

static bool fits_rule(int64_t offset)
{
    return offset > TMK_SAVED_LOST && offset <= INT32_MAX;
}

static bool set_pc_offset(const struct saved_place *p, struct tmk_unwind_rule *rule)
{
    if (p->how == AT_CFA && fits_rule(p->offset)) {
        rule->pc_offset = (int32_t)p->offset;
        return true;
    }
#if defined(__aarch64__)
    if (p->how == SAME) {
        rule->flags |= TMK_RULE_LEAF;
        return true;
    }
#endif
    return false;
}

/* A frame pointer that is lost, or saved in a place that cannot be expressed, may not be needed by
 * the caller. */
static void set_fp_offset(const struct saved_place *p, struct tmk_unwind_rule *rule)
{
    rule->fp_offset = p->how == SAME ? TMK_SAVED_SAME : TMK_SAVED_LOST;
    bool is_based = p->how == AT_REGISTER && p->reg == TMK_REG_FP;
    if ((p->how != AT_CFA && !is_based) || !fits_rule(p->offset))
        return;
    rule->fp_offset = (int32_t)p->offset;
    if (is_based)
        rule->flags |= TMK_RULE_BASED;
}

static bool rule_of(const struct cfi_row *row, struct tmk_unwind_rule *ret)
{
    struct tmk_unwind_rule rule = {.cfa_reg = row->cfa.reg,
                                   .flags = row->cfa.deref ? TMK_RULE_DEREF : 0};
    if (row->places[PLACE_PC].how == LOST) {
        ret->flags = TMK_RULE_LAST;
        return true;
    }
    if (row->is_strange || !fits_rule(row->cfa.offset) ||
        !set_pc_offset(&row->places[PLACE_PC], &rule))
        return false;
    rule.cfa_offset = (int32_t)row->cfa.offset;
    set_fp_offset(&row->places[PLACE_FP], &rule);
    *ret = rule;
    return true;
}

/* True for the code that the kernel lets a signal handler return to. */
static bool is_signal_return(const struct tmk_mapped_file *m, uintptr_t at)
{
#if defined(__x86_64__)
    static const uint8_t code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
#elif defined(__aarch64__)
    static const uint8_t code[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};
#endif
    return at >= m->code_start && at < m->code_end && m->code_end - at >= sizeof code &&
           memcmp((const void *)at, code, sizeof code) == 0;
}

void tmk_unwind_find(const struct tmk_mapped_file *m, uintptr_t pc, struct tmk_unwind_rule *ret)
{
    struct frame_description d;
    *ret = (struct tmk_unwind_rule){.flags = TMK_RULE_NONE};
    if (is_signal_return(m, pc + 1)) {
        ret->flags = TMK_RULE_SIGNAL;
        return;
    }
    uintptr_t at = find_description(m, pc);
    if (!at || !read_description(m, at, &d) || pc < d.start || pc >= d.end)
        return;
    struct cfi_machine machine = {
        .d = &d, .at = d.start, .pc = pc, .row = {.cfa.reg = NO_REG, .is_strange = true}};
    if (!run_program(&machine, d.first))
        return;
    machine.initial = machine.row;
    if (run_program(&machine, d.second))
        (void)rule_of(&machine.row, ret);
}

/* ---- stepping ---- */

/* Below the stack pointer is what a function has just released: in its last instructions its
 * registers are restored, while the table still says where they were saved. */
enum { RED_ZONE = 128 };

/* Where the kernel saves a thread's registers, from the stack pointer in its trampoline on: the
 * ucontext (x86-64), siginfo and ucontext (aarch64). */
#if defined(__x86_64__)
enum { SAVED_PC = 168 };
static const uint16_t saved_at[TMK_UNWIND_REGS] = {
    [TMK_REG_SP] = 160, [TMK_REG_FP] = 120, [TMK_REG_RBX] = 128, [TMK_REG_R10] = 56,
    [TMK_REG_R12] = 72, [TMK_REG_R13] = 80, [TMK_REG_R14] = 88,  [TMK_REG_R15] = 96,
};
#elif defined(__aarch64__)
enum { SAVED_PC = 568 };
static const uint16_t saved_at[TMK_UNWIND_REGS] = {
    [TMK_REG_SP] = 560, [TMK_REG_FP] = 544, [TMK_REG_X30] = 552};
#endif

static bool step_over_signal(struct tmk_unwind_regs *regs, const struct tmk_stack_bounds *bounds)
{
    struct tmk_unwind_regs next = {.known = (1u << TMK_UNWIND_REGS) - 1, .exact = true};
    uintptr_t sp = regs->r[TMK_REG_SP];
    if (!tmk_unwind_load(sp + SAVED_PC, sp, bounds->top, &next.pc))
        return false;
    for (uint32_t i = 0; i < TMK_UNWIND_REGS; i++)
        if (!tmk_unwind_load(sp + saved_at[i], sp, bounds->top, &next.r[i]))
            return false;
    if (next.r[TMK_REG_SP] <= sp || next.r[TMK_REG_SP] >= bounds->top)
        return false;
    *regs = next;
    return next.pc != 0;
}

/* The address without the signature that aarch64 may put into it. */
static inline uintptr_t plain_address(uintptr_t address)
{
#if defined(__aarch64__)
    register uintptr_t x30 __asm__("x30") = address;
    __asm__("hint #7" : "+r"(x30)); /* xpaclri: does nothing where there are no signatures */
    return x30;
#else
    return address;
#endif
}

bool tmk_unwind_step_slow(const struct tmk_unwind_rule *rule, struct tmk_unwind_regs *regs,
                          const struct tmk_stack_bounds *bounds)
{
    if (rule->flags & (TMK_RULE_SIGNAL | TMK_RULE_LAST | TMK_RULE_NONE))
        return (rule->flags & TMK_RULE_SIGNAL) && step_over_signal(regs, bounds);
    if (!(regs->known & 1u << rule->cfa_reg))
        return false;
    uintptr_t sp = regs->r[TMK_REG_SP], top = bounds->top;
    uintptr_t lowest = regs->exact && sp - bounds->low >= RED_ZONE ? sp - RED_ZONE : sp;
    uintptr_t cfa = regs->r[rule->cfa_reg] + (uintptr_t)(intptr_t)rule->cfa_offset;
    if ((rule->flags & TMK_RULE_DEREF) && !tmk_unwind_load(cfa, lowest, top, &cfa))
        return false;
    if (cfa < sp || (cfa == sp && !regs->exact) || cfa > top)
        return false;
    uint32_t known = regs->known & (1u << TMK_REG_SP | 1u << TMK_REG_FP);
#if defined(__aarch64__)
    if (rule->flags & TMK_RULE_LEAF) {
        if (!(regs->known & 1u << TMK_REG_X30))
            return false;
        regs->pc = regs->r[TMK_REG_X30];
    } else
#endif
        if (!tmk_unwind_load(cfa + (uintptr_t)(intptr_t)rule->pc_offset, lowest, top, &regs->pc))
        return false;
    if (rule->fp_offset > TMK_SAVED_LOST) {
        uintptr_t from = rule->flags & TMK_RULE_BASED ? regs->r[TMK_REG_FP] : cfa;
        if ((rule->flags & TMK_RULE_BASED) && !(known & 1u << TMK_REG_FP))
            return false;
        if (!tmk_unwind_load(from + (uintptr_t)(intptr_t)rule->fp_offset, lowest, top,
                             &regs->r[TMK_REG_FP]))
            return false;
        known |= 1u << TMK_REG_FP;
    } else if (rule->fp_offset == TMK_SAVED_LOST) {
        known &= ~(1u << TMK_REG_FP);
    }
    *regs = (struct tmk_unwind_regs){.pc = plain_address(regs->pc),
                                     .r[TMK_REG_SP] = cfa,
                                     .r[TMK_REG_FP] = regs->r[TMK_REG_FP],
                                     .known = known};
    return regs->pc != 0;
}
