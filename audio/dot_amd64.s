#include "textflag.h"

// SUM adds up the lanes of y0 to y3 into the first lane of x0, the low half of y0;
// x1 is the low half of y1.
#define SUM(y0, y1, y2, y3, x0, x1) \
	VADDPS       y1, y0, y0 \
	VADDPS       y3, y2, y2 \
	VADDPS       y2, y0, y0 \
	VEXTRACTF128 $1, y0, x1 \
	VADDPS       x1, x0, x0 \
	VHADDPS      x0, x0, x0 \
	VHADDPS      x0, x0, x0

// func dotFMA(a, b *float32, n int) float32
// Four sums of eight lanes; n is a positive multiple of 8.
TEXT ·dotFMA(SB), NOSPLIT, $0-28
	MOVQ   a+0(FP), SI
	MOVQ   b+8(FP), DI
	MOVQ   n+16(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3

wide:
	CMPQ        CX, $32
	JLT         narrow
	VMOVUPS     (SI), Y4
	VMOVUPS     32(SI), Y5
	VMOVUPS     64(SI), Y6
	VMOVUPS     96(SI), Y7
	VFMADD231PS (DI), Y4, Y0
	VFMADD231PS 32(DI), Y5, Y1
	VFMADD231PS 64(DI), Y6, Y2
	VFMADD231PS 96(DI), Y7, Y3
	ADDQ        $128, SI
	ADDQ        $128, DI
	SUBQ        $32, CX
	JMP         wide

narrow:
	TESTQ       CX, CX
	JZ          sum
	VMOVUPS     (SI), Y4
	VFMADD231PS (DI), Y4, Y0
	ADDQ        $32, SI
	ADDQ        $32, DI
	SUBQ        $8, CX
	JMP         narrow

sum:
	SUM(Y0, Y1, Y2, Y3, X0, X1)
	VZEROUPPER
	MOVSS        X0, ret+24(FP)
	RET

// func rowFMA(out, row, buf *float32, taps, groups, down, up int) out[k·up] is
// dotFMA(row, buf[k·down:]) for k < 3·groups, bit for bit. row is read once for
// three outputs.
TEXT ·rowFMA(SB), NOSPLIT, $0-56
	MOVQ out+0(FP), DX
	MOVQ buf+16(FP), BX
	MOVQ groups+32(FP), R10
	MOVQ down+40(FP), AX
	MOVQ up+48(FP), R11
	SHLQ $2, AX
	SHLQ $2, R11

group:
	MOVQ   row+8(FP), SI
	MOVQ   taps+24(FP), CX
	MOVQ   BX, DI
	LEAQ   (DI)(AX*1), R8
	LEAQ   (DI)(AX*2), R9
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7
	VXORPS Y8, Y8, Y8
	VXORPS Y9, Y9, Y9
	VXORPS Y10, Y10, Y10
	VXORPS Y11, Y11, Y11

wide3:
	CMPQ        CX, $32
	JLT         narrow3
	VMOVUPS     (SI), Y12
	VMOVUPS     32(SI), Y13
	VMOVUPS     64(SI), Y14
	VMOVUPS     96(SI), Y15
	VFMADD231PS (DI), Y12, Y0
	VFMADD231PS 32(DI), Y13, Y1
	VFMADD231PS 64(DI), Y14, Y2
	VFMADD231PS 96(DI), Y15, Y3
	VFMADD231PS (R8), Y12, Y4
	VFMADD231PS 32(R8), Y13, Y5
	VFMADD231PS 64(R8), Y14, Y6
	VFMADD231PS 96(R8), Y15, Y7
	VFMADD231PS (R9), Y12, Y8
	VFMADD231PS 32(R9), Y13, Y9
	VFMADD231PS 64(R9), Y14, Y10
	VFMADD231PS 96(R9), Y15, Y11
	ADDQ        $128, SI
	ADDQ        $128, DI
	ADDQ        $128, R8
	ADDQ        $128, R9
	SUBQ        $32, CX
	JMP         wide3

narrow3:
	TESTQ       CX, CX
	JZ          sum3
	VMOVUPS     (SI), Y12
	VFMADD231PS (DI), Y12, Y0
	VFMADD231PS (R8), Y12, Y4
	VFMADD231PS (R9), Y12, Y8
	ADDQ        $32, SI
	ADDQ        $32, DI
	ADDQ        $32, R8
	ADDQ        $32, R9
	SUBQ        $8, CX
	JMP         narrow3

sum3:
	SUM(Y0, Y1, Y2, Y3, X0, X1)
	SUM(Y4, Y5, Y6, Y7, X4, X5)
	SUM(Y8, Y9, Y10, Y11, X8, X9)
	VMOVSS X0, (DX)
	VMOVSS X4, (DX)(R11*1)
	VMOVSS X8, (DX)(R11*2)
	LEAQ   (AX)(AX*2), DI
	ADDQ   DI, BX
	LEAQ   (R11)(R11*2), DI
	ADDQ   DI, DX
	DECQ   R10
	JNZ    group
	VZEROUPPER
	RET
