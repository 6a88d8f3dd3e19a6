/* SPDX-License-Identifier: Apache-2.0
 *
 * Which part of a machine with several memories (NUMA) a GPU hangs on, and memory from
 * there: copies that cross between the parts share the link that all of them do.
 */
#include "kernels/device.h"

#include <ctype.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* <linux/mempolicy.h>'s, which not every machine has. */
enum { PREFERRED = 1, NODES = 1024 };
enum { NODE_BITS = 8 * sizeof(unsigned long), NODE_WORDS = NODES / NODE_BITS };

/* -1: the system does not tell, or there is one alone. */
static int node_of(int index)
{
    char bus[32], path[96];
    int node = -1;
    if (cudaDeviceGetPCIBusId(bus, sizeof bus, index) != cudaSuccess) {
        cudaGetLastError(); /* it is no failure of the device */
        return -1;
    }
    for (char *c = bus; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", bus);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%d", &node) != 1)
        node = -1;
    if (f)
        fclose(f);
    return node < NODES ? node : -1;
}

bool cuda_prefer_node(struct cuda_node *before, int index)
{
    unsigned long wanted[NODE_WORDS] = {0};
    const int node = node_of(index);
    if (node < 0 || syscall(SYS_get_mempolicy, &before->mode, before->nodes,
                            (unsigned long)NODES, NULL, 0UL) != 0)
        return false;
    wanted[(size_t)node / NODE_BITS] = 1UL << ((size_t)node % NODE_BITS);
    return syscall(SYS_set_mempolicy, PREFERRED, wanted, (unsigned long)NODES) == 0;
}

void cuda_leave_node(const struct cuda_node *before)
{
    syscall(SYS_set_mempolicy, before->mode, before->nodes, (unsigned long)NODES);
}
