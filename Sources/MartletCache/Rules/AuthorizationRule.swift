/// Whether a response to a request with credentials may be used for others (RFC 9111 §3.5).
package enum AuthorizationRule {
    /// Whether it says so: `public`, `must-revalidate` or `s-maxage`.
    package static func allowsSharing(_ control: CacheControl) -> Bool {
        !control.isMalformed && (control.isPublic || control.mustRevalidate || control.sharedMaxAge != nil)
    }
}
