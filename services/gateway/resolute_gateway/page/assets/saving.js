function o(c,n){const e=URL.createObjectURL(new Blob(c));t(e,n),URL.revokeObjectURL(e)}function t(c,n){const e=document.createElement("a");e.href=c,e.download=n,e.click()}export{o as a,t as s};
