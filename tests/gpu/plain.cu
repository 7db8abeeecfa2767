/* SPDX-License-Identifier: MIT */
/* plain.cu - a CUDA program without a framework that lists its own allocations, a line each:
 *
 *     KIND ADDRESS BYTES alive|freed
 *
 * nvcc -o plain plain.cu (static cudart), nvcc -cudart shared -o plain_shared plain.cu. Sleeps at the
 * end, so that the card is looked at while everything is there. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cuda_runtime.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        cudaError_t rc_ = (call);                                                                  \
        if (rc_ != cudaSuccess) {                                                                  \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(rc_));                           \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void say(const char *kind, const void *address, size_t bytes, const char *state)
{
    printf("%s %llu %zu %s\n", kind, (unsigned long long)(size_t)address, bytes, state);
}

__global__ void fill(char *p, size_t n)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        p[i] = 1;
}

int main(void)
{
    static const size_t sizes[] = {1, 512, 1 << 20, (1 << 20) + 1, 64 << 20, 1000000007};
    void *p;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        OK(cudaMalloc(&p, sizes[i]));
        fill<<<64, 256>>>((char *)p, sizes[i]);
        say("device", p, sizes[i], i % 2 ? "freed" : "alive");
        OK(cudaDeviceSynchronize());
        if (i % 2)
            OK(cudaFree(p));
    }
    size_t pitch;
    OK(cudaMallocPitch(&p, &pitch, 1000, 333));
    say("device", p, pitch * 333, "alive");
    OK(cudaMallocHost(&p, 5 << 20));
    say("pinned", p, 5 << 20, "alive");
    OK(cudaHostAlloc(&p, 3 << 20, cudaHostAllocMapped));
    say("pinned", p, 3 << 20, "freed");
    OK(cudaFreeHost(p));
    OK(cudaMallocManaged(&p, 7 << 20));
    say("managed", p, 7 << 20, "alive");
    void *host = aligned_alloc(4096, 1 << 20);
    OK(cudaHostRegister(host, 1 << 20, cudaHostRegisterDefault));
    say("registered", host, 1 << 20, "freed");
    OK(cudaHostUnregister(host));
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    void *async[3];
    for (size_t i = 0; i < 3; i++) {
        OK(cudaMallocAsync(&async[i], (i + 1) * (10 << 20) + 3, stream));
        say("async", async[i], (i + 1) * (10 << 20) + 3, i == 1 ? "freed" : "alive");
    }
    OK(cudaFreeAsync(async[1], stream));
    OK(cudaStreamSynchronize(stream));
    p = NULL;
    if (cudaMalloc(&p, (size_t)1 << 50) != cudaErrorMemoryAllocation)
        return 1;
    cudaGetLastError();
    fflush(stdout);
    sleep(3);
    _exit(0);
}
