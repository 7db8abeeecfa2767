/* SPDX-License-Identifier: MIT */
/* cli/run/recording.c - see recording.h. */
#include "cli/run/recording.h"

#include <stdlib.h>
#include <string.h>

#include "cli/front/locate.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/run/run_folder.h"
#include "kit/amount.h"
#include "trace/layout.h"

bool tmk_recording_max_size(const struct tmk_args *args, uint64_t *ret_bytes)
{
    const char *text = tmk_args_get(args, "max-size");
    uint64_t bytes;
    char least[TMK_AMOUNT_BYTES];
    if (!text)
        return true;
    if (tmk_size_parse(text, &bytes) < 0) {
        tmk_say("--max-size: '%s' is not a size, such as 512MiB or 2GiB", text);
        return false;
    }
    if (bytes < TMK_MAX_SIZE_LEAST) {
        tmk_say("--max-size: %s is too little, a trace needs %s", text,
                tmk_size_text(TMK_MAX_SIZE_LEAST, least));
        return false;
    }
    *ret_bytes = bytes;
    return true;
}

char *tmk_recording_library(bool for_preload)
{
    char *library = tmk_locate_library();
    const char *named = getenv("TIDEMARK_LIB");
    if (library && (!for_preload || !library[strcspn(library, " :")]))
        return library;
    if (library)
        tmk_say("the loader cannot take '%s', for the space or colon in it; put a copy elsewhere "
                "and set TIDEMARK_LIB to that",
                library);
    else if (named && *named)
        tmk_say("TIDEMARK_LIB says %s, but there is no such library", named);
    else
        tmk_say("libtidemark.so is not beside the program nor in ../lib; set TIDEMARK_LIB to it");
    free(library);
    return NULL;
}

char *tmk_recording_name(const struct tmk_args *args, const char *program)
{
    const char *named = tmk_args_get(args, "output");
    char *name = !named          ? tmk_run_folder_name(program)
                 : *named == '-' ? tmk_xformat("./%s", named)
                                 : tmk_xstrdup(named);
    for (size_t n = strlen(name); n > 1 && name[n - 1] == '/'; n--)
        name[n - 1] = '\0';
    return name;
}

bool tmk_recording_claim(const struct tmk_args *args, const char *program, char **ret_name,
                         char **ret_folder)
{
    if (!tmk_args_get(args, "output"))
        return tmk_run_folder_claim_new(program, ret_name, ret_folder);
    char *name = tmk_recording_name(args, program);
    char *folder = tmk_absolute_path(name);
    if (!tmk_run_folder_claim(folder, name)) {
        free(name);
        free(folder);
        return false;
    }
    *ret_name = name;
    *ret_folder = folder;
    return true;
}
