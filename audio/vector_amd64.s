#include "textflag.h"

// func clampAVX2(dst *float32, src unsafe.Pointer, n int) int Eight samples at a
// time: those below 1e-20 become 0, the others are limited to [-1, 1]. It stops
// before eight samples that hold a NaN or an infinity.
TEXT ·clampAVX2(SB), NOSPLIT, $0-32
	MOVQ         dst+0(FP), DI
	MOVQ         src+8(FP), SI
	MOVQ         n+16(FP), CX
	XORQ         AX, AX
	MOVL         $0x7fffffff, DX // all but the sign
	VMOVD        DX, X8
	VPBROADCASTD X8, Y8
	MOVL         $0x7f7fffff, DX // the largest finite magnitude
	VMOVD        DX, X9
	VPBROADCASTD X9, Y9
	MOVL         $0x1e3ce508, DX // plainAbove-1
	VMOVD        DX, X10
	VPBROADCASTD X10, Y10
	MOVL         $0x3f800000, DX // 1
	VMOVD        DX, X11
	VPBROADCASTD X11, Y11
	MOVL         $0xbf800000, DX // -1
	VMOVD        DX, X12
	VPBROADCASTD X12, Y12

eight:
	CMPQ     AX, CX
	JGE      clamped
	VMOVUPS  (SI)(AX*4), Y0
	VPAND    Y8, Y0, Y1
	VPCMPGTD Y9, Y1, Y2
	VPTEST   Y2, Y2
	JNZ      clamped
	VPCMPGTD Y10, Y1, Y3
	VMINPS   Y11, Y0, Y0
	VMAXPS   Y12, Y0, Y0
	VPAND    Y3, Y0, Y0
	VMOVUPS  Y0, (DI)(AX*4)
	ADDQ     $8, AX
	JMP      eight

clamped:
	VZEROUPPER
	MOVQ AX, ret+24(FP)
	RET

// func stereoSumsAVX2(out *[5]float64, block *float32, n int)
// out is the sums of both channels, of their squares and of their products; n, the
// number of interleaved samples, is a multiple of 8.
TEXT ·stereoSumsAVX2(SB), NOSPLIT, $0-24
	MOVQ   out+0(FP), DI
	MOVQ   block+8(FP), SI
	MOVQ   n+16(FP), CX
	VXORPD Y0, Y0, Y0
	VXORPD Y1, Y1, Y1
	VXORPD Y2, Y2, Y2
	VXORPD Y3, Y3, Y3
	VXORPD Y4, Y4, Y4
	VXORPD Y5, Y5, Y5

four:
	SUBQ        $8, CX
	JLT         summed
	VCVTPS2PD   (SI), Y6
	VCVTPS2PD   16(SI), Y7
	VPERMILPD   $5, Y6, Y8 // the channels swapped
	VPERMILPD   $5, Y7, Y9
	VADDPD      Y6, Y0, Y0
	VADDPD      Y7, Y1, Y1
	VFMADD231PD Y6, Y6, Y2
	VFMADD231PD Y7, Y7, Y3
	VFMADD231PD Y6, Y8, Y4
	VFMADD231PD Y7, Y9, Y5
	ADDQ        $32, SI
	JMP         four

summed:
	VADDPD       Y1, Y0, Y0
	VADDPD       Y3, Y2, Y2
	VADDPD       Y5, Y4, Y4
	VEXTRACTF128 $1, Y0, X1
	VEXTRACTF128 $1, Y2, X3
	VEXTRACTF128 $1, Y4, X5
	VADDPD       X1, X0, X0
	VADDPD       X3, X2, X2
	VADDPD       X5, X4, X4
	VMOVUPD      X0, (DI)
	VMOVUPD      X2, 16(DI)
	VMOVSD       X4, 32(DI)
	VZEROUPPER
	RET

// func mixStereoAVX2(mono, block *float32, n int, left, right float32)
// mono[i] = left·block[2i] + right·block[2i+1] for i < n, a multiple of 8, rounded
// after each of the three operations.
TEXT ·mixStereoAVX2(SB), NOSPLIT, $0-32
	MOVQ         mono+0(FP), DI
	MOVQ         block+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS left+24(FP), Y0
	VBROADCASTSS right+28(FP), Y1

frames:
	SUBQ    $8, CX
	JLT     mixed
	VMOVUPS (SI), Y2
	VMOVUPS 32(SI), Y3
	VSHUFPS $0x88, Y3, Y2, Y4 // left samples 0 1 4 5 2 3 6 7
	VSHUFPS $0xdd, Y3, Y2, Y5 // right ones
	VMULPS  Y0, Y4, Y4
	VMULPS  Y1, Y5, Y5
	VADDPS  Y5, Y4, Y4
	VPERMPD $0xd8, Y4, Y4 // 0 to 7
	VMOVUPS Y4, (DI)
	ADDQ    $64, SI
	ADDQ    $32, DI
	JMP     frames

mixed:
	VZEROUPPER
	RET
