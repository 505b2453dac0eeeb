import Synchronization

/// The TLS contexts of a dialer: one, unless some hosts have rules of their own. Hosts with equal settings share one.
final class TLSContextSet: Sendable {
    private let settings: TLSSettings
    /// For hosts without a rule.
    private let usual: TLSContextLoader
    /// Guards the others; at most one for each rule.
    private let others = Mutex<[TLSSettings: TLSContextLoader]>([:])

    init(settings: TLSSettings) {
        self.settings = settings
        var usual = settings
        usual.hosts = TLSHostRules()
        self.usual = TLSContextLoader(settings: usual)
    }

    /// The context for connections to a host.
    func context(for host: String) async throws(TLSError) -> TLSContext {
        try await loader(for: host).context()
    }

    private func loader(for host: String) -> TLSContextLoader {
        guard settings.hosts.rule(for: host) != nil else { return usual }
        let own = settings.settings(for: host)
        return others.withLock { others in
            if let loader = others[own] { return loader }
            let loader = TLSContextLoader(settings: own)
            others[own] = loader
            return loader
        }
    }
}
