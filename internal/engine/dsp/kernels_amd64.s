//go:build !purego

#include "textflag.h"

// The loops of fft.go and kernels.go on eight float32 lanes; AVX2 and FMA are
// checked before any of them is called.

// func radix4AVX(xr, xi, yr, yi, tw *float32, m, s int)
// s is a multiple of 8.
TEXT ·radix4AVX(SB), NOSPLIT, $0-56
	MOVQ xr+0(FP), SI
	MOVQ xi+8(FP), DI
	MOVQ yr+16(FP), R8
	MOVQ yi+24(FP), R9
	MOVQ tw+32(FP), R10
	MOVQ m+40(FP), R11
	MOVQ s+48(FP), R12
	SHLQ $2, R12
	MOVQ R12, R13
	IMULQ R11, R13           // bytes between the four inputs
	LEAQ (R13)(R13*2), DX
	LEAQ (R12)(R12*2), BX

columns:
	VBROADCASTSS 0(R10), Y10
	VBROADCASTSS 4(R10), Y11
	VBROADCASTSS 8(R10), Y12
	VBROADCASTSS 12(R10), Y13
	VBROADCASTSS 16(R10), Y14
	VBROADCASTSS 20(R10), Y15
	MOVQ R12, CX

rows:
	VMOVUPS (SI), Y0
	VMOVUPS (SI)(R13*1), Y1
	VMOVUPS (SI)(R13*2), Y2
	VMOVUPS (SI)(DX*1), Y3
	VADDPS Y2, Y0, Y4        // a+c, real
	VSUBPS Y2, Y0, Y5        // a-c
	VADDPS Y3, Y1, Y6        // b+d
	VSUBPS Y3, Y1, Y7        // b-d
	VMOVUPS (DI), Y0
	VMOVUPS (DI)(R13*1), Y1
	VMOVUPS (DI)(R13*2), Y2
	VMOVUPS (DI)(DX*1), Y3
	VADDPS Y2, Y0, Y8        // a+c, imaginary
	VSUBPS Y2, Y0, Y9        // a-c
	VADDPS Y3, Y1, Y2        // b+d
	VSUBPS Y3, Y1, Y3        // b-d
	VADDPS Y6, Y4, Y0
	VADDPS Y2, Y8, Y1
	VMOVUPS Y0, (R8)
	VMOVUPS Y1, (R9)
	VSUBPS Y6, Y4, Y4
	VSUBPS Y2, Y8, Y8
	VMULPS Y13, Y8, Y0
	VMULPS Y12, Y8, Y1
	VFMSUB231PS Y12, Y4, Y0
	VFMADD231PS Y13, Y4, Y1
	VMOVUPS Y0, (R8)(R12*2)
	VMOVUPS Y1, (R9)(R12*2)
	VADDPS Y3, Y5, Y4
	VSUBPS Y7, Y9, Y8
	VMULPS Y11, Y8, Y0
	VMULPS Y10, Y8, Y1
	VFMSUB231PS Y10, Y4, Y0
	VFMADD231PS Y11, Y4, Y1
	VMOVUPS Y0, (R8)(R12*1)
	VMOVUPS Y1, (R9)(R12*1)
	VSUBPS Y3, Y5, Y5
	VADDPS Y7, Y9, Y9
	VMULPS Y15, Y9, Y0
	VMULPS Y14, Y9, Y1
	VFMSUB231PS Y14, Y5, Y0
	VFMADD231PS Y15, Y5, Y1
	VMOVUPS Y0, (R8)(BX*1)
	VMOVUPS Y1, (R9)(BX*1)
	ADDQ $32, SI
	ADDQ $32, DI
	ADDQ $32, R8
	ADDQ $32, R9
	SUBQ $32, CX
	JNE rows
	ADDQ BX, R8
	ADDQ BX, R9
	ADDQ $24, R10
	DECQ R11
	JNE columns
	VZEROUPPER
	RET

// func multiplyAddAVX(outR, outI, inR, inI *float32, n int, fr, fi float32)
// n is a positive multiple of 8.
TEXT ·multiplyAddAVX(SB), NOSPLIT, $0-48
	MOVQ outR+0(FP), SI
	MOVQ outI+8(FP), DI
	MOVQ inR+16(FP), R8
	MOVQ inI+24(FP), R9
	MOVQ n+32(FP), CX
	VBROADCASTSS fr+40(FP), Y10
	VBROADCASTSS fi+44(FP), Y11

next:
	VMOVUPS (R8), Y0
	VMOVUPS (R9), Y1
	VMOVUPS (SI), Y2
	VMOVUPS (DI), Y3
	VFMADD231PS Y10, Y0, Y2
	VFNMADD231PS Y11, Y1, Y2
	VFMADD231PS Y11, Y0, Y3
	VFMADD231PS Y10, Y1, Y3
	VMOVUPS Y2, (SI)
	VMOVUPS Y3, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	ADDQ $32, R8
	ADDQ $32, R9
	SUBQ $8, CX
	JNE next
	VZEROUPPER
	RET

DATA quarter<>+0(SB)/4, $0x3e800000
GLOBL quarter<>(SB), RODATA, $4

// func powerPairsAVX(dst, zr, zi, split *float32, half int)
// Eight lanes; half is at least 2.
TEXT ·powerPairsAVX(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), AX
	MOVQ zr+8(FP), SI
	MOVQ zi+16(FP), DI
	MOVQ split+24(FP), R10
	MOVQ half+32(FP), R11
	MOVQ R11, DX
	SHLQ $5, DX              // byte offset of bin half
	LEAQ (SI)(DX*1), R8
	LEAQ (DI)(DX*1), R9
	LEAQ (AX)(DX*1), BX
	SHRQ $1, R11             // pairs
	VBROADCASTSS quarter<>(SB), Y15

pairs:
	ADDQ $32, AX
	ADDQ $32, SI
	ADDQ $32, DI
	ADDQ $8, R10
	SUBQ $32, R8
	SUBQ $32, R9
	SUBQ $32, BX
	VBROADCASTSS 0(R10), Y10
	VBROADCASTSS 4(R10), Y11
	VMOVUPS (SI), Y0
	VMOVUPS (R8), Y1
	VMOVUPS (DI), Y2
	VMOVUPS (R9), Y3
	VADDPS Y1, Y0, Y4        // er
	VSUBPS Y0, Y1, Y5        // oi
	VSUBPS Y3, Y2, Y6        // ei
	VADDPS Y3, Y2, Y7        // or
	VMULPS Y11, Y5, Y0
	VMULPS Y10, Y5, Y1
	VFMSUB231PS Y10, Y7, Y0  // tr
	VFMADD231PS Y11, Y7, Y1  // ti
	VADDPS Y0, Y4, Y2
	VADDPS Y1, Y6, Y3
	VSUBPS Y0, Y4, Y4
	VSUBPS Y1, Y6, Y6
	VMULPS Y2, Y2, Y2
	VFMADD231PS Y3, Y3, Y2
	VMULPS Y15, Y2, Y2
	VMULPS Y4, Y4, Y4
	VFMADD231PS Y6, Y6, Y4
	VMULPS Y15, Y4, Y4
	VMOVUPS Y2, (AX)
	VMOVUPS Y4, (BX)
	DECQ R11
	JNE pairs
	VZEROUPPER
	RET

// func bandSumsAVX(dst, weights, power *float32, n int)
TEXT ·bandSumsAVX(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ weights+8(FP), SI
	MOVQ power+16(FP), R8
	MOVQ n+24(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1

two:
	CMPQ CX, $2
	JLT one
	VBROADCASTSS 0(SI), Y2
	VBROADCASTSS 4(SI), Y3
	VFMADD231PS (R8), Y2, Y0
	VFMADD231PS 32(R8), Y3, Y1
	ADDQ $8, SI
	ADDQ $64, R8
	SUBQ $2, CX
	JMP two

one:
	TESTQ CX, CX
	JEQ done
	VBROADCASTSS 0(SI), Y2
	VFMADD231PS (R8), Y2, Y0

done:
	VADDPS Y1, Y0, Y0
	VMOVUPS Y0, (DI)
	VZEROUPPER
	RET
