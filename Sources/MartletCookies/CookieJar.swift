public import MartletCore
package import FoundationEssentials
import Synchronization

/// A store of cookies, which are accepted and sent as RFC 6265bis specifies.
///
/// A session with a jar sends its cookies and stores those of responses, with every request, including redirects.
/// Several sessions can share a jar. Cookies are found by the host of the URL; the `Host` field is ignored.
///
/// Requests count as caused by the user: `SameSite` is stored and restricts nothing. A cookie that is `Secure` is
/// accepted and sent over https only, also on localhost, where browsers and curl trust http as well. RFC 6265bis leaves
/// that to the client; `trustsLoopback` selects the behavior of browsers.
///
/// With a file, cookies are read from it before the first lookup, and written to it by ``save()`` only. It is replaced
/// as a whole, and readable only by its owner. From a damaged file, all intact lines are read.
public actor CookieJar {
    /// Whether cookies are sent and stored.
    public nonisolated let policy: CookiePolicy
    /// The public suffixes.
    public nonisolated let publicSuffixes: any PublicSuffixes
    /// The file, if there is one.
    public nonisolated let file: FilePath?
    /// Whether http to this machine counts as secure.
    public nonisolated let trustsLoopback: Bool

    private let keepsSessionCookies: Bool
    private let now: @Sendable () -> Date
    private var store: CookieStore
    /// Whether the public suffixes were read, and reading the file was tried. Written within the actor.
    private nonisolated let isPrepared = Atomic(false)
    /// Whether the file was read, or the jar has no file.
    private var isLoaded: Bool
    /// The revision of the store that is in the file.
    private var savedRevision: UInt64 = 0
    /// Whether there is nothing to send; false before the file was read. Written within the actor.
    private nonisolated let emptiness: Atomic<Bool>
    /// Files are written by one thread, in the order of the calls.
    private static let writer = BlockingThreadPool(threadLimit: 1)

    /// Creates a jar, with or without a file.
    /// - Parameters:
    ///   - file: the file; `nil` for a jar in memory only. It is not read yet.
    ///   - keepsSessionCookies: whether session cookies are written to the file, too; default no.
    ///   - policy: whether cookies are sent and stored; default both.
    ///   - publicSuffixes: the domains for which no site may set cookies; default the machine's list.
    ///   - limits: the limits on cookies.
    ///   - trustsLoopback: whether http to `localhost`, names below it, 127.0.0.0/8 and ::1 counts as secure; default
    ///     no.
    public init(
        file: (any FilePathConvertible)? = nil, keepsSessionCookies: Bool = false, policy: CookiePolicy = .always,
        publicSuffixes: any PublicSuffixes = .system, limits: CookieLimits = CookieLimits(),
        trustsLoopback: Bool = false
    ) {
        self.init(
            file: file?.filePath, keepsSessionCookies: keepsSessionCookies, policy: policy,
            publicSuffixes: publicSuffixes, limits: limits, trustsLoopback: trustsLoopback, now: { Date() })
    }

    /// Creates a jar with a clock.
    package init(
        file: FilePath? = nil, keepsSessionCookies: Bool = false, policy: CookiePolicy = .always,
        publicSuffixes: any PublicSuffixes = .system, limits: CookieLimits = CookieLimits(),
        trustsLoopback: Bool = false, now: @escaping @Sendable () -> Date
    ) {
        (self.file, self.keepsSessionCookies, self.policy) = (file, keepsSessionCookies, policy)
        (self.publicSuffixes, self.trustsLoopback, self.now) = (publicSuffixes, trustsLoopback, now)
        store = CookieStore(limits: limits, suffixes: publicSuffixes)
        isLoaded = file == nil
        emptiness = Atomic(file == nil)
    }

    // MARK: Requests

    /// Whether there is certainly nothing to send. It does not wait, so that sessions without cookies are not delayed.
    ///
    /// It is false before the file was read.
    public nonisolated var isEmpty: Bool { emptiness.load(ordering: .acquiring) }

    /// Whether the public suffixes and the file were read, so that no user code has to be awaited.
    package nonisolated var isReady: Bool { isPrepared.load(ordering: .acquiring) }

    /// The cookies for a URL, in the order of sending: longer paths first, then earlier cookies.
    public func cookies(for url: HTTPURL) async -> [Cookie] {
        guard policy.sendsCookies, !isEmpty else { return [] }
        await prepare()
        return store.cookies(for: url, isSecure: isSecure(url), now: now())
    }

    /// The value of the `Cookie` field for a URL; `nil` without cookies.
    ///
    /// Bytes that are not UTF-8 are replaced by U+FFFD here; a session sends them unchanged.
    public func header(for url: HTTPURL) async -> String? {
        await headerBytes(for: url).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The bytes of the `Cookie` field for a URL; `nil` without cookies.
    package func headerBytes(for url: HTTPURL) async -> [UInt8]? {
        guard policy.sendsCookies, !isEmpty else { return nil }
        await prepare()
        return store.header(for: url, isSecure: isSecure(url), now: now())
    }

    /// Stores the cookies of a response.
    /// - Parameters:
    ///   - values: the values of its `Set-Cookie` fields, separately and in order.
    ///   - url: the URL of the response.
    /// - Returns: the fields that were not stored, with the reasons; empty if the policy stores no cookies.
    @discardableResult public func store(setCookieValues values: [String], from url: HTTPURL) async -> [CookieRejection]
    { await store(setCookieBytes: values.map { Array($0.utf8) }, from: url) }

    /// Stores the cookies of a response, given as bytes.
    @discardableResult package func store(setCookieBytes values: [[UInt8]], from url: HTTPURL) async
        -> [CookieRejection]
    {
        guard policy.storesCookies, !values.isEmpty else { return [] }
        await prepare()
        defer { noteCount() }
        return store.receive(values, from: url, isSecure: isSecure(url), now: now())
    }

    // MARK: Cookies

    /// All cookies that have not expired, by domain.
    public var allCookies: [Cookie] {
        get async {
            await prepare()
            return store.allCookies(at: now())
        }
    }

    /// Stores a cookie. It replaces a cookie with the same name, domain and path.
    ///
    /// An expired cookie removes that one. If the domain is a public suffix, the cookie is only sent to that host.
    public func set(_ cookie: Cookie) async {
        await prepare()
        store.insert(cookie, now: now())
        noteCount()
    }

    /// Removes a cookie: the one with the same name, domain, reach and path.
    public func remove(_ cookie: Cookie) async { await remove { $0.isSame(as: cookie) } }

    /// Removes the cookies that pass a test.
    /// - Returns: their number.
    @discardableResult public func remove(where isUnwanted: @Sendable (Cookie) -> Bool) async -> Int {
        await prepare()
        defer { noteCount() }
        return store.remove(where: isUnwanted)
    }

    /// Removes the cookies of a domain and of all names below it.
    /// - Returns: their number.
    @discardableResult public func removeCookies(domain: String) async -> Int {
        guard let host = CookieHost(domain) else { return 0 }
        return await remove { CookieHost(canonical: $0.domain).matches(domain: host.text) }
    }

    /// Removes the session cookies.
    /// - Returns: their number.
    @discardableResult public func removeSessionCookies() async -> Int { await remove(where: \.isSessionCookie) }

    /// Removes all cookies. The file is not changed before ``save()``.
    public func removeAll() async { await remove { _ in true } }

    // MARK: File

    /// Reads the file, unless it was read. The first use of the jar does so automatically. It treats an unreadable file
    /// as empty; this function and ``save()`` report the error.
    ///
    /// A file that does not exist is empty. Existing cookies are not replaced.
    /// - Returns: the result; an empty one on later calls.
    /// - Throws: ``StorageError`` if the file exists and cannot be read, or is larger than 64 MiB.
    @discardableResult public func load() async throws(StorageError) -> CookieImportReport {
        await publicSuffixes.prepare()
        guard let file, !isLoaded else { return CookieImportReport() }
        let source = CookieFile(path: file.string)
        let content = try await BlockingThreadPool.shared.run(throwing: source.read)
        // Another call may have read it in the meantime, and cookies may have been stored since.
        guard !isLoaded else { return CookieImportReport() }
        isLoaded = true
        let newer = store.allCookies(at: now())
        store = CookieStore(limits: store.limits, suffixes: publicSuffixes)
        let report = insert(content)
        if newer.isEmpty, report.dropped == 0 { savedRevision = store.revision }
        for cookie in newer { store.insert(cookie, now: now()) }
        noteCount()
        return report
    }

    /// Whether the cookies differ from those in the file.
    public var hasUnsavedChanges: Bool { file != nil && store.revision != savedRevision }

    /// Writes the cookies that have not expired to the file, if any changed since it was read or written.
    ///
    /// The file is replaced as a whole once everything is on disk. Cancelling the caller leaves the old or the new
    /// file. Without a file nothing happens.
    /// - Throws: ``StorageError`` if the file cannot be read before it is replaced, or cannot be written.
    public func save() async throws(StorageError) {
        guard let file else { return }
        try await load()
        guard hasUnsavedChanges else { return }
        let revision = store.revision
        let cookies = store.allCookies(at: now()).filter { keepsSessionCookies || !$0.isSessionCookie }
        try await write(to: file) { CookieFile.text(of: cookies) }
        savedRevision = max(savedRevision, revision)
    }

    private func write(to path: FilePath, _ text: @escaping @Sendable () -> [UInt8]) async throws(StorageError) {
        let name = path.string
        try await CookieJar.writer.run { () throws(StorageError) in try CookieFile.replace(name, with: text()) }
    }

    // MARK: Netscape's format

    /// Imports a cookie file in the format of Netscape and curl.
    ///
    /// Malformed lines are skipped and listed in the report.
    @discardableResult public func importNetscape(_ text: some Sequence<UInt8> & Sendable) async -> CookieImportReport {
        await prepare()
        defer { noteCount() }
        return insert(NetscapeCookieFile.cookies(Array(text), now: now()))
    }

    /// Imports a cookie file in the format of Netscape and curl.
    /// - Throws: ``StorageError`` if it cannot be read, or is larger than 64 MiB.
    @discardableResult public func importNetscape(contentsOf path: some FilePathConvertible) async throws(StorageError)
        -> CookieImportReport
    {
        let name = path.filePath.string
        let text = try await BlockingThreadPool.shared.run { () throws(StorageError) in
            try FileReader(path: name).contents(limit: CookieFile.byteLimit)
        }
        return await importNetscape(text)
    }

    /// All cookies that have not expired, including session cookies, in the format of Netscape and curl. Cookies with a
    /// tab in name, value or path cannot be represented, and are omitted.
    public func exportNetscape() async -> [UInt8] { NetscapeCookieFile.text(of: await allCookies) }

    /// Writes all cookies that have not expired to a file in the format of Netscape and curl. It replaces an existing
    /// file, and is readable only by its owner.
    public func exportNetscape(to path: some FilePathConvertible) async throws(StorageError) {
        let text = await exportNetscape()
        try await write(to: path.filePath) { text }
    }

    // MARK: Private functions

    /// Waits until the public suffixes and the file were read.
    private func prepare() async {
        guard !isReady else { return }
        // An error is reported by `load` and `save`.
        _ = try? await load()
        // Set last, so that concurrent callers wait for the file, too.
        isPrepared.store(true, ordering: .releasing)
        noteCount()
    }

    private func insert(_ content: CookieFile.Content) -> CookieImportReport {
        let now = now()
        let stored = content.cookies.count { store.insert($0, now: now) }
        return CookieImportReport(
            stored: stored, dropped: content.cookies.count - stored, malformedLines: content.malformedLines)
    }

    private func noteCount() { emptiness.store(store.count == 0, ordering: .releasing) }

    private func isSecure(_ url: HTTPURL) -> Bool {
        url.scheme == .https || (trustsLoopback && CookieHost(url).isLoopback)
    }
}
