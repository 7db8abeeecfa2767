/* SPDX-License-Identifier: MIT */
/* cuda_main.c - cuda_linked SCENE, cuda_loaded WAY SCENE: do it and print the list. */
#include <stdio.h>
#include <string.h>

#include "cuda_list.h"
#include "cuda_scenes.h"

static const struct scene {
    const char *name;
    void (*play)(void);
} scenes[] = {
    {"families", scene_families}, {"threads", scene_threads}, {"full", scene_full},
    {"vmm", scene_vmm},           {"pools", scene_pools},     {"ipc", scene_ipc},
    {"contexts", scene_contexts}, {"race", scene_race},       {"hold", scene_hold},
    {"fork", scene_fork},         {"streams", scene_streams},
};

int main(int argc, char **argv)
{
    const char *name = argv[argc - 1];
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        if (strcmp(scenes[i].name, name) != 0)
            continue;
        cuda_ways_find(argc > 2 ? argv[1] : "");
        scenes[i].play();
        list_print();
        return 0;
    }
    fprintf(stderr, "usage: %s [WAY] SCENE\n", argv[0]);
    return 2;
}
