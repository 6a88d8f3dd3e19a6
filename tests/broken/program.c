/* SPDX-License-Identifier: Apache-2.0
 * Not a plugin at all, or one that was linked as a program.
 */
int main(void)
{
    return 0;
}
