import Synchronization

extension HTTPURL {
    /// The parts of an address, and what requests need of them, made once.
    final class Components: Sendable {
        let scheme: Scheme
        let userInfo: UserInfo?
        let host: String
        let hostKind: HostKind
        let explicitPort: Int?
        let path: String
        let query: String?
        let fragment: String?
        /// See ``HTTPURL/hostFieldValue``.
        let hostFieldValue: String
        /// See ``HTTPURL/requestTarget``.
        let requestTarget: String
        /// See ``HTTPURL/absoluteForm``; made when it is first asked for, which most addresses are never.
        private let form = Mutex<String?>(nil)

        package init(
            scheme: Scheme, userInfo: UserInfo?, host: String, hostKind: HostKind, explicitPort: Int?,
            path: String, query: String?, fragment: String?
        ) {
            self.scheme = scheme
            self.userInfo = userInfo
            self.host = host
            self.hostKind = hostKind
            self.explicitPort = explicitPort
            self.path = path
            self.query = query
            self.fragment = fragment
            let bracketed = hostKind == .ipv6 ? "[\(host)]" : host
            hostFieldValue = explicitPort.map { "\(bracketed):\($0)" } ?? bracketed
            requestTarget = query.map { "\(path)?\($0)" } ?? path
        }

        /// See ``HTTPURL/absoluteForm``.
        var absoluteForm: String {
            if let form = form.withLock({ $0 }) { return form }
            let made = "\(scheme)://\(hostFieldValue)\(requestTarget)"
            form.withLock { $0 = made }
            return made
        }
    }

    /// Whether all components are equal.
    public static func == (left: HTTPURL, right: HTTPURL) -> Bool {
        let (one, other) = (left.components, right.components)
        return one === other
            || one.scheme == other.scheme && one.host == other.host && one.path == other.path
                && one.explicitPort == other.explicitPort && one.query == other.query
                && one.fragment == other.fragment && one.userInfo == other.userInfo
    }

    /// Feeds the components that make up its identity.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(scheme)
        hasher.combine(host)
        hasher.combine(explicitPort)
        hasher.combine(path)
        hasher.combine(query)
        hasher.combine(fragment)
        hasher.combine(userInfo)
    }
}
