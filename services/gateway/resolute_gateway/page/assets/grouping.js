function p(n,r){const o=new Map;for(const t of n){const e=r(t),s=o.get(e);s?s.push(t):o.set(e,[t])}return o}export{p as g};
