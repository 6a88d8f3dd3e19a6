/* SPDX-License-Identifier: Apache-2.0
 * An entry without a note; its constructor leaves a file behind if it ever runs.
 */
#include <fcntl.h>
#include <unistd.h>

__attribute__((visibility("default"))) const void *strata_module_v1(const void *host)
{
    return host;
}

__attribute__((constructor)) static void construct(void)
{
    close(open(MARKER, O_CREAT | O_WRONLY, 0600));
}
