/* SPDX-License-Identifier: MIT */
/* Programs that are hard on whoever stands in front of the driver: odd_program HOW [LIBRARY].
 *
 *     stub LIBRARY     reach the driver through odd_stub.c, loaded RTLD_LOCAL
 *     reload           load the driver, unload it, and load it again at another address
 *     load LIBRARY     a thread loads odd_constructor.c while the program allocates
 *     probe            is there a driver, by dlsym(RTLD_DEFAULT)?
 *     newer            ask for cuMemAlloc as of CUDA 14 (future/odd_future.c) */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct driver {
    int (*init)(unsigned flags);
    int (*retain)(void **ret, int device);
    int (*set_current)(void *context);
    int (*alloc)(uint64_t *ret, size_t n);
};

static struct driver find_driver(void *library)
{
    struct driver d;
    *(void **)&d.init = dlsym(library, "cuInit");
    *(void **)&d.retain = dlsym(library, "cuDevicePrimaryCtxRetain");
    *(void **)&d.set_current = dlsym(library, "cuCtxSetCurrent");
    *(void **)&d.alloc = dlsym(library, "cuMemAlloc_v2");
    return d;
}

static void *context;

static void use(const struct driver *d)
{
    uint64_t p = 0;
    int codes[] = {d->init(0), d->retain(&context, 0), d->set_current(context),
                   d->alloc(&p, 3 << 20)};
    printf("%d %d %d %d\n", codes[0], codes[1], codes[2], codes[3]);
}

static int use_library(const char *name)
{
    struct driver d = find_driver(dlopen(name, RTLD_NOW | RTLD_LOCAL));
    use(&d);
    return 0;
}

/* Something is where it was, so it comes elsewhere. */
static int reload(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    struct link_map *map;
    dlinfo(library, RTLD_DI_LINKMAP, &map);
    void *base = (void *)map->l_addr;
    find_driver(library);
    dlclose(library);
    mmap(base, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return use_library("libcuda.so.1");
}

static void *load_main(void *name)
{
    struct driver d = find_driver(dlopen("libcuda.so.1", RTLD_NOW));
    d.set_current(context);
    printf("%s\n", dlopen(name, RTLD_NOW) ? "loaded" : dlerror());
    return NULL;
}

static int load_beside(char *name)
{
    struct driver d = find_driver(dlopen("libcuda.so.1", RTLD_NOW));
    pthread_t thread;
    uint64_t p;
    use(&d);
    usleep(150000); /* the first look at the card is over, and the next not far */
    pthread_create(&thread, NULL, load_main, name);
    for (int i = 0; i < 40; i++) {
        d.alloc(&p, 1 << 20);
        usleep(10000);
    }
    pthread_join(thread, NULL);
    puts("end");
    return 0;
}

static int probe(void)
{
    void *found = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
    const char *error = dlerror();
    printf("%s %s\n", found ? "found" : "none", error ? "told" : "not told");
    return 0;
}

static int ask_newer(void)
{
    int (*ask)(const char *name, void **ret, int version, uint64_t flags, int *ret_status);
    int (*alloc)(int device, uint64_t *ret, size_t n) = NULL;
    uint64_t p = 0;
    int status;
    *(void **)&ask = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress_v2");
    int rc = ask("cuMemAlloc", (void **)&alloc, 14000, 0, &status);
    int code = alloc(3, &p, 100);
    printf("%d %d %llx\n", rc, code, (unsigned long long)p);
    return 0;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "stub") == 0 && argc > 2)
        return use_library(argv[2]);
    if (strcmp(how, "reload") == 0)
        return reload();
    if (strcmp(how, "load") == 0 && argc > 2)
        return load_beside(argv[2]);
    if (strcmp(how, "probe") == 0)
        return probe();
    return strcmp(how, "newer") == 0 ? ask_newer() : 2;
}
