/* SPDX-License-Identifier: Apache-2.0
 * The library that undefined.c needs; removed before the module is loaded.
 */
__attribute__((visibility("default"))) int from_elsewhere(void);
int from_elsewhere(void)
{
    return 1;
}
