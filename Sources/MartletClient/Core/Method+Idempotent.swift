package import HTTPTypes

extension HTTPRequest.Method {
    /// Whether the method's effect is the same however often it is carried out (RFC 9110 §9.2.2).
    package var isIdempotent: Bool {
        switch self {
        case .get, .head, .options, .trace, .put, .delete: true
        default: false
        }
    }
}
