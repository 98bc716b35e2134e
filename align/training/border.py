"""Trains the border network of package align.
usage: border.py TRAINING_SETS TEST_SETS OUT.f32   (folders, separated by commas)"""
import difflib
import json
import re
import sys
import unicodedata

import numpy as np


def key(s):
    return re.sub(r"[^\w']", '', s.lower())


def load(d):
    """recordings of a set: manifest line, dump line, pairs of equal words"""
    out = []
    for m, u in zip(map(json.loads, open(d + '/manifest.jsonl')), map(json.loads, open(d + '/dump.jsonl'))):
        sm = difflib.SequenceMatcher(None, [key(w['word']) for w in m['words']], [key(w['Text']) for w in u['words']], autojunk=False)
        out.append((m, u, [(i + k, j + k) for i, j, n in sm.get_matching_blocks() for k in range(n)]))
    return out


LO,HI=-56,18
NC=HI-LO+1
POOL=[(-16,-11),(-11,-7),(-7,-5),(-5,-4),(-4,-3),(-3,-2),(-2,-1),(-1,0),(0,1),(1,2),(2,3),(3,4),(4,6),(6,10),(10,16)]
NB=24
def letter(c):
    c=unicodedata.normalize('NFD',c.lower())[0]
    return ord(c)-96 if 'a'<=c<='z' else 0
def data(dirs):
    X=[];L=[];Y=[];P=[];M=[]
    for d in dirs:
        for m,u,pairs in load(d):
            try: fb=np.fromfile(d+'/'+m['file']+'.fb',dtype='<f4').reshape(-1,NB)
            except FileNotFoundError: continue
            n=len(fb)
            k=np.zeros(n,bool)
            for a,b in u['speech']: k[int(round(a*100)):int(round(b*100))]=True
            mu=fb[k].mean(0); fb=(fb-mu)/3.0
            fb=np.clip(fb,-4,4)
            pad=np.pad(fb,((60,60),(0,0)),mode='edge')
            cum=np.concatenate([np.zeros((1,NB)),np.cumsum(pad,0)])
            ws=u['words']
            for i,j in pairs:
                T=int(round(ws[j]['First']*100)); y=m['words'][i]['start']*100
                b=np.arange(T+LO,T+HI+1)+60
                b=np.clip(b,20,len(pad)-20)
                if y<T+LO-0.5 or y>T+HI+0.5: M.append(abs(y-T))
                X.append(np.concatenate([(cum[b+q]-cum[b+p])/(q-p) for p,q in POOL],1).astype(np.float32))
                w=''.join(c for c in ws[j]['Text'] if c.isalnum()); pv=''.join(c for c in ws[j-1]['Text'] if c.isalnum()) if j>0 else ''
                gap=99 if ws[j]['Fresh'] else T-int(round(ws[j-1]['Last']*100))
                L.append([letter(pv[-2]) if len(pv)>1 else 27, letter(pv[-1]) if pv else 28, letter(w[0]), letter(w[1]) if len(w)>1 else 27])
                Y.append(y-T); P.append(60 if gap==99 else min(gap,59))
    return np.array(X),np.array(L),np.array(Y),np.array(P),len(M)


H1,H2=48,24
tr,te=sys.argv[1].split(','),sys.argv[2].split(',')
X,L,Y,P,m=data(tr); x,l,y,p,m2=data(te)
print(X.shape,x.shape,'out of range',m,m2)
rng=np.random.default_rng(1)
F=X.shape[2]; NL=29
W1=rng.normal(0,1/np.sqrt(F),(F,H1)).astype('f4'); WL=rng.normal(0,.1,(4,NL,H1)).astype('f4'); b1=np.zeros(H1,'f4')
W2=rng.normal(0,1/np.sqrt(H1),(H1,H2)).astype('f4'); b2=np.zeros(H2,'f4'); w3=rng.normal(0,1/np.sqrt(H2),H2).astype('f4')
u=np.zeros((2,NC),'f4'); v=np.zeros(121,'f4')
params=[W1,WL,b1,W2,b2,w3,u,v]
mo=[np.zeros_like(q) for q in params]; vo=[np.zeros_like(q) for q in params]
offs=np.arange(LO,HI+1)
def forward(X,L,P):
    h=X@W1+b1+sum(WL[k][L[:,k]] for k in range(4))[:,None,:]
    a=np.maximum(h,0); h2=a@W2+b2; a2=np.maximum(h2,0)
    vi=np.clip(offs[None,:]+P[:,None],-60,60)+60
    s=a2@w3+u[(P>=60).astype(int)]+v[vi]
    return h,a,h2,a2,vi,s
def soft(s):
    e=np.exp(s-s.max(1,keepdims=True)); return e/e.sum(1,keepdims=True)
def ev(X,L,Y,P,name):
    s=np.concatenate([forward(X[i:i+256],L[i:i+256],P[i:i+256])[-1] for i in range(0,len(X),256)])
    q=soft(s); k=q.argmax(1); e=abs(offs[k]-Y)*10
    # smoothed argmax & median
    c=q.cumsum(1); md=offs[(c>=.5).argmax(1)]; e2=abs(md-Y)*10
    print(name,f'argmax {e.mean():.1f} ms {100*(e<=50).mean():.1f}% | median {e2.mean():.1f} ms {100*(e2<=50).mean():.1f}%',flush=True)
B=64; step=0; N=len(X); T=5
total=T*N//B
for ep in range(T):
    order=rng.permutation(N); loss=0
    for i in range(0,N-B+1,B):
        k=order[i:i+B]; Xb,Lb,Yb,Pb=X[k],L[k],Y[k],P[k]
        Xb=Xb+rng.normal(0,.1,(B,1,1)).astype('f4')
        h,a,h2,a2,vi,s=forward(Xb,Lb,Pb)
        q=soft(s); t=np.exp(-.5*((offs[None]-Yb[:,None])/1.3)**2); t/=t.sum(1,keepdims=True)+1e-9
        loss+=-(t*np.log(q+1e-9)).sum()/B
        g=(q-t)/B
        gw3=np.einsum('bn,bnh->h',g,a2); g2=g[:,:,None]*w3*(h2>0)
        gW2=np.einsum('bnh,bnk->hk',a,g2); gb2=g2.sum((0,1)); g1=(g2@W2.T)*(h>0)
        gW1=Xb.reshape(-1,F).T@g1.reshape(-1,H1); gb1=g1.sum((0,1)); gl=g1.sum(1)
        gWL=np.zeros_like(WL)
        for z in range(4): np.add.at(gWL[z],Lb[:,z],gl)
        gu=np.zeros_like(u); np.add.at(gu,(Pb>=60).astype(int),g); gv=np.zeros_like(v); np.add.at(gv,vi,g)
        step+=1; lr=3e-3*min(1,step/100)*(1-step/(total+1))
        for n,(pp,gg) in enumerate(zip(params,[gW1,gWL,gb1,gW2,gb2,gw3,gu,gv])):
            mo[n]=.9*mo[n]+.1*gg; vo[n]=.99*vo[n]+.01*gg*gg
            pp-=(lr*(mo[n]/(1-.9**step)/(np.sqrt(vo[n]/(1-.99**step))+1e-8)+2e-3*pp*(pp.ndim>1))).astype('f4')
    print(ep,'loss %.3f'%(loss/(N//B)),end=' ')
    if ep%3==2 or ep==T-1: ev(x,l,y,p,'test')
    else: print()
ev(X,L,Y,P,'train')
np.concatenate([p.ravel() for p in params]).astype('<f4').tofile(sys.argv[3])
