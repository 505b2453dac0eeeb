import Synchronization

extension HTTPURL {
    /// The parts of an address.
    struct Parts: Hashable, Sendable {
        var scheme: Scheme
        var userInfo: UserInfo?
        var host: String
        var hostKind: HostKind
        var explicitPort: Int?
        var path: String
        var query: String?
        var fragment: String?
    }

    /// The parts of an address, and what requests need of them, made once.
    final class Components: Sendable {
        let parts: Parts
        /// See ``HTTPURL/hostFieldValue``.
        let hostFieldValue: String
        /// See ``HTTPURL/requestTarget``.
        let requestTarget: String
        /// See ``HTTPURL/absoluteForm``; made when it is first asked for, which most addresses are never.
        private let form = Mutex<String?>(nil)

        init(_ parts: Parts) {
            self.parts = parts
            let bracketed = parts.hostKind == .ipv6 ? "[\(parts.host)]" : parts.host
            hostFieldValue = parts.explicitPort.map { "\(bracketed):\($0)" } ?? bracketed
            requestTarget = parts.query.map { "\(parts.path)?\($0)" } ?? parts.path
        }

        /// See ``HTTPURL/absoluteForm``.
        var absoluteForm: String {
            if let form = form.withLock({ $0 }) { return form }
            let made = "\(parts.scheme)://\(hostFieldValue)\(requestTarget)"
            form.withLock { $0 = made }
            return made
        }
    }

    /// The address after a change of its parts.
    func with(_ change: (inout Parts) -> Void) -> HTTPURL {
        var parts = components.parts
        change(&parts)
        return HTTPURL(parts)
    }

    /// Whether all components are equal.
    public static func == (left: HTTPURL, right: HTTPURL) -> Bool {
        left.components === right.components || left.components.parts == right.components.parts
    }

    /// Feeds the components that make up its identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(components.parts) }
}
