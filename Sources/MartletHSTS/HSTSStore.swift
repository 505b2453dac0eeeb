package import FoundationEssentials
public import MartletStorage
public import MartletTransport
public import MartletURL
import Synchronization
public import SystemPackage

/// A store of hosts whose URLs are requested over https only: HTTP Strict Transport Security (RFC 6797).
///
/// ```swift
/// configuration.hsts = try HSTSStore(file: "/var/lib/app/hsts.txt")
/// ```
///
/// A session with a store changes the URLs of calls for known hosts from http to https before anything else is derived
/// from them: no middleware, cache, cookie jar or proxy sees the http URL, and no byte is sent in plain text. Port 80
/// becomes 443, any other port stays (§8.3). This applies to calls, to targets of redirects, and to URLs that
/// middleware sets. The change is not a redirect: it is not among ``HTTPMetrics/hops``, and the response has the https
/// URL. Header fields, body and credentials of the call are sent with the https request. Only `credentialsByOrigin` is
/// looked up by the https origin.
///
/// The field `Strict-Transport-Security` of a response is stored if it was received over TLS from a host name, and the
/// certificate was verified. It is ignored with ``TrustPolicy/dangerouslyAcceptingAnyCertificate``, without
/// ``TLSSettings/verifiesHostName``, and if a custom policy accepted a certificate with an error (§8.1). Only the first
/// such field counts; a malformed one is ignored. Responses of the cache change nothing.
///
/// Several sessions can share a store. All functions can be called from any task.
public final class HSTSStore: Sendable {
    /// The file; `nil` for a store in memory.
    public let file: FilePath?
    /// The numbers of the malformed lines in the file when it was read, starting at 1; the first thousand of them.
    public let malformedLines: [Int]
    /// The lock on the entries.
    private let table: Mutex<HSTSTable>
    private let preloaded: HSTSTable
    private let now: @Sendable () -> Date
    /// A pool with one thread, which writes files in the order of the calls.
    private static let writer = BlockingThreadPool(threadLimit: 1)

    /// Creates a store in memory.
    /// - Parameters:
    ///   - preloaded: Entries that are always known; none by default. They are not among ``entries``, do not count
    ///     against the limit, are not written to a file, and neither servers nor ``remove(_:)`` change them.
    ///   - limit: The maximum number of other entries; 10,000 by default. The one that expires first is removed.
    public convenience init(preloaded: [HSTSEntry] = [], limit: Int = 10_000) {
        self.init(nil, HSTSFile.Content(), preloaded: preloaded, limit: limit) { Date() }
    }

    /// Creates a store with a file, and reads it, which blocks for a moment. A file that does not exist counts as
    /// empty; damaged lines are skipped and listed in ``malformedLines``. The file is written by ``save()`` only.
    ///
    /// The file has the format of curl, and can be shared with `curl --hsts`.
    /// - Parameters:
    ///   - file: The file.
    ///   - preloaded: Entries that are always known, as for ``init(preloaded:limit:)``.
    ///   - limit: The maximum number of other entries, as for ``init(preloaded:limit:)``.
    /// - Throws: ``StorageError`` if the file exists but cannot be read, or is larger than 16 MiB. A program that wants
    ///   to continue without the file uses a store in memory.
    public convenience init(
        file: some FilePathConvertible, preloaded: [HSTSEntry] = [], limit: Int = 10_000
    ) throws(StorageError) {
        let path = file.filePath
        self.init(path, try HSTSFile.read(path.string), preloaded: preloaded, limit: limit) { Date() }
    }

    /// Creates a store with a function that returns the current time.
    package init(
        _ file: FilePath?, _ content: HSTSFile.Content, preloaded: [HSTSEntry] = [], limit: Int = 10_000,
        now: @escaping @Sendable () -> Date
    ) {
        (self.file, malformedLines, self.now) = (file, content.malformedLines, now)
        // A line has at most 275 bytes, so that the file stays readable.
        table = Mutex(HSTSTable(limit: min(limit, 60_000), content.entries))
        let fixed = preloaded.map { ($0.host, $0) }
        // Of several entries for a host, the one that expires last, as in a file.
        self.preloaded = HSTSTable(
            limit: preloaded.count, Dictionary(fixed) { $0.expiresBefore($1) ? $1 : $0 })
    }

    // MARK: Requests

    /// Whether URLs of a host are requested over https: it has an entry, or a domain above it has one that includes
    /// subdomains (RFC 6797 §8.2). `false` for an IP address and for an invalid host.
    /// - Parameter host: The host in any spelling that a URL allows.
    public func isKnownHost(_ host: String) -> Bool {
        guard let entry = try? HSTSEntry(host: host) else { return false }
        return contains(entry.host)
    }

    /// Returns the URL to request instead of another: with https if it is an http URL of a known host, otherwise
    /// unchanged. Port 80 becomes 443; another port stays.
    public func upgraded(_ url: HTTPURL) -> HTTPURL {
        guard url.scheme == .http, !url.isIPLiteral, contains(url.host) else { return url }
        return HTTPURL(
            scheme: .https, userInfo: url.userInfo, host: url.host, hostKind: url.hostKind,
            explicitPort: url.explicitPort, path: url.path, query: url.query, fragment: url.fragment)
    }

    /// Stores the `Strict-Transport-Security` field of a response, which must have come from an https server with a
    /// verified certificate. A `max-age` of 0 removes the host's entry.
    /// - Parameters:
    ///   - value: The value of the first such field of the response.
    ///   - url: The URL of the response.
    /// - Returns: `false` if the field is ignored: it is malformed, or the URL is not https, or its host an IP address.
    @discardableResult public func store(strictTransportSecurity value: String, from url: HTTPURL) -> Bool {
        store(Array(value.utf8), from: url)
    }

    /// Stores a field that is given as bytes.
    @discardableResult package func store(_ value: some Sequence<UInt8>, from url: HTTPURL) -> Bool {
        guard url.scheme == .https, !url.isIPLiteral, let field = StrictTransportSecurity(value) else { return false }
        let now = now()
        let end = now.timeIntervalSince1970 + Double(field.maximumAge)
        set(
            HSTSEntry(
                canonical: url.host, includesSubdomains: field.includesSubdomains,
                expires: end > HSTSFile.latestTime ? nil : Date(timeIntervalSince1970: end)))
        return true
    }

    private func contains(_ host: String) -> Bool {
        let now = now()
        return preloaded.contains(host, at: now) || table.withLock { $0.contains(host, at: now) }
    }

    // MARK: Entries

    /// The entries that have not expired, sorted by host, without the preloaded ones.
    public var entries: [HSTSEntry] {
        let (now, all) = (now(), table.withLock { $0.entries })
        return all.values.filter { !$0.isExpired(at: now) }.sorted { $0.host < $1.host }
    }

    /// Stores an entry in place of that of the same host. An expired entry only removes it.
    public func set(_ entry: HSTSEntry) {
        let now = now()
        table.withLock { $0.set(entry, at: now) }
    }

    /// Removes the entry of a host, not those of domains above or below it.
    /// - Parameter host: The host in any spelling that a URL allows.
    /// - Returns: Whether there was an entry.
    @discardableResult public func remove(_ host: String) -> Bool {
        guard let entry = try? HSTSEntry(host: host) else { return false }
        return table.withLock { $0.remove(entry.host) }
    }

    /// Removes all entries, except preloaded ones. The file is not changed before ``save()``.
    public func removeAll() { table.withLock { $0.removeAll() } }

    // MARK: File

    /// Whether the entries differ from those in the file.
    public var hasUnsavedChanges: Bool { file != nil && table.withLock { $0.hasUnsavedChanges } }

    /// Writes the entries to the file, if any changed since the file was read or written. Without a file, nothing is
    /// done.
    ///
    /// The file is replaced as a whole once everything is on disk, also if the caller is cancelled. It is readable only
    /// by its owner. Entries that another process has added to the file or changed since are kept, and also become
    /// known here. They are removed by ``removeAll()``, and if more than twice the limit of hosts changed since the
    /// last save. If two processes save at the same moment, the last one wins.
    /// - Throws: ``StorageError`` if the file cannot be read before it is replaced, or cannot be written. The changes
    ///   are written by the next call then.
    public func save() async throws(StorageError) {
        guard let path = file?.string else { return }
        try await HSTSStore.writer.run { () throws(StorageError) in try self.write(to: path) }
    }

    private func write(to path: String) throws(StorageError) {
        let current = table.withLock { $0 }
        guard current.hasUnsavedChanges else { return }
        let merged = current.merged(with: try HSTSFile.read(path).entries, at: now())
        try HSTSFile.replace(path, with: merged)
        table.withLock { $0.didSave(merged, revision: current.revision) }
    }
}
