import Glibc
import Synchronization

/// The chains that a context has verified recently. In further connections to the same server, only the server's own
/// signature (RFC 8446 §4.4.3) is verified.
///
/// The result of a verification depends on the settings, roots and revocation lists of the context, on the certificates
/// as the server sent them, on the host, and on the time. A cache belongs to one context, whose settings never change.
/// Host and certificates are the key, and ``VerifiedChain`` limits the time. Failures are not stored. Pins are compared
/// on every connection. A context with a custom trust policy has no cache.
final class VerifiedChains: Sendable {
    /// SHA-256 of the host and the certificates.
    typealias Key = [UInt8]

    /// Guards the chains and the number of verifications that they have replaced.
    private let state: Mutex<(chains: LeastRecentlyUsed<Key, VerifiedChain>, reuseCount: Int)>
    /// The times at which a revocation list becomes valid or expires, in seconds since 1970.
    private let listTimes: [Int]

    /// Creates a cache for the context with these revocation lists. By default it has 256 chains of about 200 bytes.
    init(listTimes: [Int], limit: Int = 256) {
        self.listTimes = listTimes
        state = Mutex((chains: LeastRecentlyUsed(limit: limit), reuseCount: 0))
    }

    /// Returns the key of a chain.
    /// - Parameter chain: The certificates as the peer sent them, its own first.
    /// - Returns: `nil` if the digest cannot be computed: the chain is then verified, and not stored.
    static func key(host: String, chain: [OpaquePointer]) -> Key? {
        let certificates = unsafe chain.map { unsafe Certificate.der(of: $0) }
        guard let digest = try? MessageDigest(.sha256), !certificates.contains([]) else { return nil }
        // Host and certificates cannot be confused: each part begins with its length.
        digest.update("\(host.utf8.count):\(host)".utf8)
        for certificate in certificates { digest.update(certificate) }
        return try? digest.finish()
    }

    /// Returns the chain if its verification would succeed now, too.
    func find(_ key: Key, at moment: VerifiedChain.Moment = .now()) -> VerifiedChain? {
        state.withLock { state in
            guard let chain = state.chains.value(for: key), chain.isValid(at: moment) else { return nil }
            state.reuseCount += 1
            return chain
        }
    }

    /// Stores a verified chain.
    /// - Parameters:
    ///   - chain: The verified chain, the trust anchor last. If the end of a certificate is unreadable, it is not stored.
    ///   - candidates: The certificates and keys for pins; `nil` without pins.
    ///   - moment: The time before the verification.
    func insert(_ key: Key, chain: [OpaquePointer], candidates: PinCandidates?, at moment: VerifiedChain.Moment) {
        let ends = unsafe chain.map { unsafe Certificate.expiry(of: $0) }
        guard !ends.contains(nil) else { return }
        let changes = listTimes + ends.compactMap { $0 }
        let verified = VerifiedChain(verifiedAt: moment, changes: changes, candidates: candidates)
        // Removed chains are released after the lock.
        _ = state.withLock { $0.chains.update(verified, for: key) }
    }

    /// The number of verifications that stored chains have replaced.
    var reuseCount: Int { state.withLock { $0.reuseCount } }
    var count: Int { state.withLock { $0.chains.count } }
}

/// A chain that was verified, and the time in which another verification would have the same result.
///
/// That time begins with the verification, so it never contains the time before the validity of a certificate, even if
/// the clock is set back. It ends when a certificate expires or a revocation list becomes valid or expires, and after
/// ten minutes at the latest, on the calendar's clock and on one that cannot be set.
struct VerifiedChain: Sendable {
    /// A time on both clocks.
    struct Moment: Sendable {
        /// Seconds since 1970, which OpenSSL compares with certificates.
        var calendar: Int
        /// The time since the computer was started, including its sleep.
        var sinceBoot: MonotonicTime

        static func now() -> Moment { Moment(calendar: time(nil), sinceBoot: .sinceBoot()) }
    }

    /// The maximum time for which a verification is not repeated.
    static let lifetime = Duration.seconds(600)

    /// The certificates and keys of the chain, with which pins are compared; `nil` without pins.
    let candidates: PinCandidates?
    private let start: Moment
    private let end: Int

    /// - Parameter changes: The times at which the result may change, in seconds since 1970; past ones are ignored.
    init(verifiedAt start: Moment, changes: [Int], candidates: PinCandidates? = nil) {
        (self.start, self.candidates) = (start, candidates)
        let last = start.calendar.addingReportingOverflow(Int(VerifiedChain.lifetime.wholeSeconds)).partialValue
        end = changes.reduce(last) { $1 > start.calendar ? min($0, $1) : $0 }
    }

    func isValid(at moment: Moment) -> Bool {
        start.calendar <= moment.calendar && moment.calendar < end && start.sinceBoot <= moment.sinceBoot
            && moment.sinceBoot.since(start.sinceBoot) < VerifiedChain.lifetime
    }
}
