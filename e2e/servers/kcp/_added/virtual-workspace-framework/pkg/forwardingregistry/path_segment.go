// Added to virtual-workspace-framework v0.31.2 when kcp v0.32.3 is built; see ../../../../../README.md.
package forwardingregistry

import "k8s.io/apimachinery/pkg/api/validation/path"

// ValidatePathSegmentName is the only name that kcp v0.32.3 expects here and v0.31.2 does not have. This is what v0.31.2 itself checks names with.
var ValidatePathSegmentName = path.ValidatePathSegmentName
