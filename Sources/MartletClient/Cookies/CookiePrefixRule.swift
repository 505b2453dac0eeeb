import MartletWire

/// What the beginning of a cookie's name promises of it (RFC 6265bis §4.1.3, §5.7), in any case of its
/// letters.
struct CookiePrefixRule {
    private enum Promise {
        case none, secure, host
        /// A cookie without a name whose value would be read as a name with a prefix.
        case pretended
    }

    private let promise: Promise

    init(name: [UInt8], value: [UInt8]) {
        let isNameless = name.isEmpty
        let text = isNameless ? value : name
        if CookiePrefixRule.begins(text, with: "__secure-") {
            promise = isNameless ? .pretended : .secure
        } else if CookiePrefixRule.begins(text, with: "__host-") {
            promise = isNameless ? .pretended : .host
        } else {
            promise = .none
        }
    }

    /// Whether a cookie is what its name promises.
    ///
    /// - Parameter path: the path it was given in so many words; nil when it was given none.
    func allows(isSecure: Bool, isHostOnly: Bool, path: String?) -> Bool {
        switch promise {
        case .none: true
        case .secure: isSecure
        case .host: isSecure && isHostOnly && path == "/"
        case .pretended: false
        }
    }

    private static func begins(_ text: [UInt8], with prefix: String) -> Bool {
        text.prefix(prefix.utf8.count).map(ByteClass.lowercased).elementsEqual(prefix.utf8)
    }
}
