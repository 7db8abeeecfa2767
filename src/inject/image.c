/* SPDX-License-Identifier: MIT */
/* inject/image.c - see image.h. */
#include "inject/image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kit/grow.h"

enum {
    MAX_PROGRAM_HEADERS = 64,
    MAX_DYNAMIC = 256,
    MAX_CHAIN = 4096,
    MAX_SYMBOLS = 1 << 20,
    HIDDEN_VERSION = 0x8000,
};

/* ---- memory ---- */

bool tmk_image_read(const struct tmk_image *image, uint64_t address, void *to, size_t n)
{
    return pread(image->mem_fd, to, n, (off_t)address) == (ssize_t)n;
}

bool tmk_image_write(const struct tmk_image *image, uint64_t address, const void *from, size_t n)
{
    return pwrite(image->mem_fd, from, n, (off_t)address) == (ssize_t)n;
}

size_t tmk_image_read_some(const struct tmk_image *image, uint64_t address, void *to, size_t n)
{
    ssize_t got = pread(image->mem_fd, to, n, (off_t)address);
    return got > 0 ? (size_t)got : 0;
}

void tmk_image_read_text(const struct tmk_image *image, uint64_t address, char *to, size_t size)
{
    size_t n = 0;
    for (; n + 1 < size && tmk_image_read(image, address + n, to + n, 1) && to[n]; n++)
        if ((unsigned char)to[n] < ' ' || to[n] == 127)
            to[n] = '?';
    to[n] = '\0';
}

/* ---- mappings ---- */

static int add_mapping(struct tmk_image *image, char *line)
{
    struct tmk_mapping m = {0};
    char perms[8] = "";
    int at = 0;
    line[strcspn(line, "\n")] = '\0';
    /* The kernel wrote these numbers. NOLINTNEXTLINE(cert-err34-c) */
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %" SCNu64 " %n", &m.start, &m.end,
               perms, &m.file_offset, &m.inode, &at) < 5)
        return 0;
    if (TMK_GROW(image->mappings, image->n + 1, image->room) < 0)
        return TMK_ENOMEM;
    m.is_code = perms[2] == 'x';
    m.path = strdup(line + at);
    if (!m.path)
        return TMK_ENOMEM;
    image->mappings[image->n++] = m;
    return 0;
}

static int read_maps(struct tmk_image *image, struct tmk_error *err)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)image->pid);
    FILE *maps = fopen(path, "re");
    if (!maps)
        return tmk_fail_os(err, TMK_EIO, errno, "cannot read %s", path);
    char *line = NULL;
    size_t room = 0;
    int rc = 0;
    while (rc == 0 && getline(&line, &room, maps) > 0)
        rc = add_mapping(image, line);
    free(line);
    fclose(maps);
    return rc < 0 ? tmk_fail(err, rc, "%s", tmk_result_text(rc)) : 0;
}

int tmk_image_open(pid_t pid, struct tmk_image *ret, struct tmk_error *err)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    *ret = (struct tmk_image){.pid = pid};
    ret->mem_fd = open(path, O_RDWR | O_CLOEXEC);
    int rc = ret->mem_fd < 0 ? tmk_fail_os(err, TMK_EIO, errno, "cannot open %s", path)
                             : read_maps(ret, err);
    if (rc < 0)
        tmk_image_close(ret);
    return rc;
}

void tmk_image_close(struct tmk_image *image)
{
    for (uint64_t i = 0; i < image->n; i++)
        free(image->mappings[i].path);
    free(image->mappings);
    if (image->mem_fd >= 0)
        close(image->mem_fd);
    *image = (struct tmk_image){.mem_fd = -1};
}

const struct tmk_mapping *tmk_image_at(const struct tmk_image *image, uint64_t address)
{
    uint64_t low = 0, high = image->n;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (image->mappings[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_in = low < image->n && image->mappings[low].start <= address;
    return is_in ? &image->mappings[low] : NULL;
}

const char *tmk_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const struct tmk_mapping *tmk_image_find(const struct tmk_image *image,
                                         bool (*fits)(const char *name))
{
    for (uint64_t i = 0; i < image->n; i++) {
        const struct tmk_mapping *m = &image->mappings[i];
        if (m->path[0] == '/' && fits(tmk_path_name(m->path)))
            return m;
    }
    return NULL;
}

bool tmk_mapping_same_file(const struct tmk_mapping *a, const struct tmk_mapping *b)
{
    return a->inode == b->inode && strcmp(a->path, b->path) == 0;
}

/* ---- ELF ---- */

/* The address of a table. The loader may have turned the file's offset into an address already. */
static uint64_t table_address(const struct tmk_image_module *m, uint64_t value)
{
    return value < m->bias ? value + m->bias : value;
}

static void take_entry(struct tmk_image_module *m, const Elf64_Dyn *d)
{
    switch (d->d_tag) {
    case DT_SYMTAB:
        m->symtab = table_address(m, d->d_un.d_ptr);
        break;
    case DT_STRTAB:
        m->strtab = table_address(m, d->d_un.d_ptr);
        break;
    case DT_STRSZ:
        m->strtab_bytes = d->d_un.d_val;
        break;
    case DT_GNU_HASH:
        m->gnu_hash = table_address(m, d->d_un.d_ptr);
        break;
    case DT_VERSYM:
        m->versym = table_address(m, d->d_un.d_ptr);
        break;
    default:
        break;
    }
}

static int read_image_dynamic(const struct tmk_image *image, struct tmk_image_module *m,
                              uint64_t address)
{
    for (int i = 0; i < MAX_DYNAMIC; i++) {
        Elf64_Dyn d;
        if (!tmk_image_read(image, address + (uint64_t)i * sizeof d, &d, sizeof d))
            return TMK_EFORMAT;
        if (d.d_tag == DT_NULL)
            break;
        take_entry(m, &d);
    }
    return m->symtab && m->strtab && m->gnu_hash ? 0 : TMK_EFORMAT;
}

/* Read the program headers of the ELF file at `head`: how many, 0: it is no ELF file. */
static int read_headers(const struct tmk_image *image, const struct tmk_mapping *head,
                        Elf64_Phdr headers[MAX_PROGRAM_HEADERS])
{
    Elf64_Ehdr e;
    if (!tmk_image_read(image, head->start, &e, sizeof e) ||
        memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_ident[EI_CLASS] != ELFCLASS64 ||
        e.e_phnum > MAX_PROGRAM_HEADERS || e.e_phentsize != sizeof headers[0] ||
        !tmk_image_read(image, head->start + e.e_phoff, headers, e.e_phnum * sizeof headers[0]))
        return 0;
    return e.e_phnum;
}

/* Where the last segment ends that has all flags of `with` and none of `without`; 0: there is
 * none. */
static uint64_t elf_segment_end(const struct tmk_image *image, const struct tmk_mapping *head,
                                uint32_t with, uint32_t without)
{
    Elf64_Phdr headers[MAX_PROGRAM_HEADERS];
    uint64_t bias = 0, end = 0;
    bool has_bias = false;
    int n = read_headers(image, head, headers);
    for (int i = 0; i < n; i++) {
        const Elf64_Phdr *h = &headers[i];
        if (h->p_type != PT_LOAD)
            continue;
        bias = has_bias ? bias : head->start - (h->p_vaddr & ~(uint64_t)4095);
        has_bias = true;
        if ((h->p_flags & with) == with && !(h->p_flags & without) && h->p_memsz > 0)
            end = bias + h->p_vaddr + h->p_memsz;
    }
    return end;
}

bool tmk_module_tail(const struct tmk_image *image, const struct tmk_mapping *head,
                     struct tmk_range *ret)
{
    uint64_t end = elf_segment_end(image, head, PF_X, PF_W);
    const struct tmk_mapping *m = end ? tmk_image_at(image, end - 1) : NULL;
    if (!m || !m->is_code || !tmk_mapping_same_file(m, head) || m->end <= end)
        return false;
    *ret = (struct tmk_range){end, m->end};
    return true;
}

/* Other memory may follow in the same mapping, so only the rest of the smallest page counts. */
bool tmk_module_data_tail(const struct tmk_image *image, const struct tmk_mapping *head,
                          struct tmk_range *ret)
{
    uint64_t end = elf_segment_end(image, head, PF_W, PF_X);
    if (end == 0 || end % 4096 == 0 || !tmk_image_at(image, end))
        return false;
    *ret = (struct tmk_range){end, (end + 4095) & ~(uint64_t)4095};
    return true;
}

int tmk_module_init(const struct tmk_image *image, const struct tmk_mapping *head,
                    struct tmk_image_module *ret)
{
    Elf64_Phdr headers[MAX_PROGRAM_HEADERS];
    int n_headers = read_headers(image, head, headers);
    struct tmk_image_module m = {.head = head};
    uint64_t dynamic = 0;
    bool has_bias = false;
    for (int i = 0; i < n_headers; i++) {
        if (headers[i].p_type == PT_LOAD && !has_bias) {
            m.bias = head->start - (headers[i].p_vaddr & ~(uint64_t)4095);
            has_bias = true;
        }
        if (headers[i].p_type == PT_DYNAMIC)
            dynamic = headers[i].p_vaddr;
    }
    int rc = has_bias && dynamic ? read_image_dynamic(image, &m, m.bias + dynamic) : TMK_EFORMAT;
    if (rc == 0)
        *ret = m;
    return rc;
}

/* ---- symbols: a look-up as the loader does it ---- */

struct gnu_hash_table {
    uint32_t n_buckets, first, n_bloom, shift;
    uint64_t bloom, buckets, chains; /* addresses */
};

static bool read_hash(const struct tmk_image *image, const struct tmk_image_module *m,
                      struct gnu_hash_table *t)
{
    uint32_t head[4];
    if (!tmk_image_read(image, m->gnu_hash, head, sizeof head) || head[0] == 0 || head[2] == 0)
        return false;
    t->n_buckets = head[0];
    t->first = head[1];
    t->n_bloom = head[2];
    t->shift = head[3] & 63;
    t->bloom = m->gnu_hash + sizeof head;
    t->buckets = t->bloom + 8ull * t->n_bloom;
    t->chains = t->buckets + 4ull * t->n_buckets;
    return true;
}

static uint32_t gnu_hash_of(const char *name)
{
    uint32_t h = 5381;
    for (; *name; name++)
        h = h * 33 + (uint8_t)*name;
    return h;
}

static bool may_have(const struct tmk_image *image, const struct gnu_hash_table *t, uint32_t hash)
{
    uint64_t word;
    return tmk_image_read(image, t->bloom + 8ull * (hash / 64 % t->n_bloom), &word, sizeof word) &&
           (word >> (hash % 64) & 1) && (word >> ((hash >> t->shift) % 64) & 1);
}

static bool is_hidden(const struct tmk_image *image, const struct tmk_image_module *m,
                      uint32_t index)
{
    uint16_t version = 0;
    return m->versym && tmk_image_read(image, m->versym + 2ull * index, &version, sizeof version) &&
           (version & HIDDEN_VERSION);
}

/* Whether symbol `index` is a function `name` that this module defines. */
static bool is_wanted_symbol(const struct tmk_image *image, const struct tmk_image_module *m,
                             uint32_t index, const char *name, Elf64_Sym *ret)
{
    char found[64];
    size_t n = strlen(name) + 1;
    return n <= sizeof found &&
           tmk_image_read(image, m->symtab + sizeof *ret * index, ret, sizeof *ret) &&
           ret->st_name < m->strtab_bytes && ret->st_shndx != SHN_UNDEF &&
           ELF64_ST_TYPE(ret->st_info) == STT_FUNC &&
           tmk_image_read(image, m->strtab + ret->st_name, found, n) && memcmp(found, name, n) == 0;
}

bool tmk_module_symbol(const struct tmk_image *image, const struct tmk_image_module *module,
                       const char *name, struct tmk_range *ret)
{
    struct gnu_hash_table t;
    uint32_t hash = gnu_hash_of(name), index, entry;
    bool found = false;
    if (!read_hash(image, module, &t) || !may_have(image, &t, hash) ||
        !tmk_image_read(image, t.buckets + 4ull * (hash % t.n_buckets), &index, sizeof index) ||
        index < t.first)
        return false;
    for (int i = 0; i < MAX_CHAIN; i++, index++) {
        Elf64_Sym s;
        if (!tmk_image_read(image, t.chains + 4ull * (index - t.first), &entry, sizeof entry))
            break;
        if ((entry | 1) == (hash | 1) && is_wanted_symbol(image, module, index, name, &s)) {
            *ret = (struct tmk_range){module->bias + s.st_value,
                                      module->bias + s.st_value + s.st_size};
            found = true;
            if (!is_hidden(image, module, index))
                break;
        }
        if (entry & 1)
            break;
    }
    return found;
}

/* How many symbols there are: the last one is at the end of the longest hash chain. 0: not
 * known. */
static uint32_t count_symbols(const struct tmk_image *image, const struct tmk_image_module *m)
{
    struct gnu_hash_table t;
    uint32_t last = 0, bucket, entry = 0;
    if (!read_hash(image, m, &t) || t.n_buckets > MAX_SYMBOLS)
        return 0;
    for (uint32_t i = 0; i < t.n_buckets; i++)
        if (tmk_image_read(image, t.buckets + 4ull * i, &bucket, sizeof bucket) && bucket > last)
            last = bucket;
    for (int i = 0; i < MAX_CHAIN && last >= t.first; i++, last++)
        if (!tmk_image_read(image, t.chains + 4ull * (last - t.first), &entry, sizeof entry) ||
            (entry & 1))
            return entry & 1 && last < MAX_SYMBOLS ? last + 1 : 0;
    return 0;
}

int tmk_module_widen(const struct tmk_image *image, const struct tmk_image_module *module,
                     struct tmk_range *range)
{
    uint32_t n = count_symbols(image, module);
    Elf64_Sym *symbols = n ? malloc(n * sizeof *symbols) : NULL;
    if (!symbols)
        return n ? TMK_ENOMEM : TMK_EFORMAT;
    if (!tmk_image_read(image, module->symtab, symbols, n * sizeof *symbols)) {
        free(symbols);
        return TMK_EFORMAT;
    }
    uint64_t before = 0, behind = UINT64_MAX;
    for (uint32_t i = 0; i < n; i++) {
        unsigned type = ELF64_ST_TYPE(symbols[i].st_info);
        if (symbols[i].st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC))
            continue;
        uint64_t start = module->bias + symbols[i].st_value, end = start + symbols[i].st_size;
        if (start < range->start && end > before)
            before = end;
        if (start >= range->end && start < behind)
            behind = start;
    }
    free(symbols);
    if (before == 0 || behind == UINT64_MAX)
        return TMK_EFORMAT;
    if (before < range->start)
        range->start = before;
    range->end = behind;
    return 0;
}
