/* SPDX-License-Identifier: MIT */
/* hostile.c - a program of which every name is markup: file, function, module, stage, tensor, mark.
 */
#include <stdlib.h>

#include "tidemark/tidemark.h"

enum { N = 40, SIZE = 4096 };

static void *make(int step)
{
    void *block = malloc(SIZE);
    tidemark_push(TIDEMARK_STAGE, "</title><script>document.title='stage'</script>");
    tidemark_push(TIDEMARK_MODULE, "layers.</script><script>document.title='owned'</script>");
    tidemark_alloc_at(TIDEMARK_CUDA(0), block, SIZE, "/x/e\"v'il</script><img src=x onerror=1>.py",
                      "<svg onload=document.title='function'>", 7);
    tidemark_tag(TIDEMARK_CUDA(0), block, TIDEMARK_ACTIVATION,
                 step % 2 ? "<b onclick=alert(1)>weight & \"bias\"</b>" : "--><!--<script>");
    tidemark_pop(TIDEMARK_MODULE);
    tidemark_pop(TIDEMARK_STAGE);
    return block;
}

int main(void)
{
    void *blocks[N];
    for (int step = 0; step < N; step++) {
        tidemark_step(step);
        blocks[step] = make(step);
        tidemark_mark("<script>document.title='mark'</script>",
                      "\xff\xfe <i>text</i> \xe2\x80\xae");
    }
    for (int step = 0; step < N; step++) {
        tidemark_free(TIDEMARK_CUDA(0), blocks[step]);
        free(blocks[step]);
    }
    return 0;
}
