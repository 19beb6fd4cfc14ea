/* Names the variant whose family's C functions run, if one of them ends, crashes or never returns. */
#ifndef SUPPORT_FAMILY_CODE_H
#define SUPPORT_FAMILY_CODE_H

/* To call before and after a family's function, in this thread: begin("emit", ID, "sm_80"). */
void family_code_begin(const char *function, const char *id, const char *target);
void family_code_end(void);

/* Watches the program from now on. If such a function ends it, perhaps with status 0, it ends with status 3 and a message. A
 * crash or an interrupt prints a message, and then has its usual effect. */
void family_code_watch(void);

#endif
