package import FoundationEssentials
public import MartletStorage
public import MartletTransport
public import MartletURL
import MartletWire
import Synchronization
public import SystemPackage

/// A store of cookies, which are accepted and sent as RFC 6265bis specifies.
///
/// A session sends its jar's cookies with each request, and stores the cookies of each response, redirects included.
/// Several sessions can share a jar. Cookies are selected by the host of the URL; the `Host` field is ignored.
///
/// Every request counts as started by the user: `SameSite` is stored, but restricts nothing. A `Secure` cookie is
/// accepted and sent over https only. With `trustsLoopback`, http to this machine counts as secure, as in browsers.
///
/// A file is read before the first lookup, and written by ``save()`` only. The file is replaced as a whole, and is
/// readable only by its owner. From a damaged file, all intact lines are read.
public actor CookieJar {
    /// Whether cookies are sent and stored.
    public nonisolated let policy: CookiePolicy
    /// The public suffixes.
    public nonisolated let publicSuffixes: any PublicSuffixes
    /// The file; `nil` for a jar in memory.
    public nonisolated let file: FilePath?
    /// Whether http to this machine counts as secure.
    public nonisolated let trustsLoopback: Bool

    private let keepsSessionCookies: Bool
    private let now: @Sendable () -> Date
    private var store: CookieStore
    /// Whether the public suffixes and the file were read. Only the actor writes this.
    private nonisolated let isPrepared = Atomic(false)
    /// Whether the file was read, or the jar has no file.
    private var isLoaded: Bool
    /// The revision of the store whose cookies are in the file.
    private var savedRevision: UInt64 = 0
    /// Whether the store has no cookies; `false` before the file was read. Only the actor writes this.
    private nonisolated let emptiness: Atomic<Bool>
    /// A pool with one thread, which writes files in the order of the calls.
    private static let writer = BlockingThreadPool(threadLimit: 1)

    /// Creates a jar, with or without a file.
    /// - Parameters:
    ///   - file: The file, which is read later; `nil` for a jar in memory only.
    ///   - keepsSessionCookies: Whether session cookies are also written to the file; `false` by default.
    ///   - policy: Whether cookies are sent and stored; both by default.
    ///   - publicSuffixes: The domains for which no site may set cookies; the machine's list by default.
    ///   - limits: The limits on cookies.
    ///   - trustsLoopback: Whether http to `localhost`, names below it, 127.0.0.0/8 and ::1 is secure; default `false`.
    public init(
        file: (any FilePathConvertible)? = nil, keepsSessionCookies: Bool = false, policy: CookiePolicy = .always,
        publicSuffixes: any PublicSuffixes = .system, limits: CookieLimits = CookieLimits(),
        trustsLoopback: Bool = false
    ) {
        self.init(
            file: file?.filePath, keepsSessionCookies: keepsSessionCookies, policy: policy,
            publicSuffixes: publicSuffixes, limits: limits, trustsLoopback: trustsLoopback, now: { Date() })
    }

    /// Creates a jar with a function that returns the current time.
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

    /// Whether there is certainly no cookie to send; `false` before the file was read. Does not wait for the actor.
    public nonisolated var isEmpty: Bool { emptiness.load(ordering: .acquiring) }

    /// Whether the public suffixes and the file were read, so that no user code has to be awaited.
    package nonisolated var isReady: Bool { isPrepared.load(ordering: .acquiring) }

    /// Returns the cookies for a URL, in sending order: longer paths first, then older cookies.
    public func cookies(for url: HTTPURL) async -> [Cookie] {
        guard policy.sendsCookies, !isEmpty else { return [] }
        await prepare()
        return store.cookies(for: url, isSecure: isSecure(url), now: now())
    }

    /// Returns the value of the `Cookie` field for a URL; `nil` without cookies. Bytes that are not UTF-8 are replaced
    /// by U+FFFD here; a session sends them unchanged.
    public func header(for url: HTTPURL) async -> String? {
        await headerBytes(for: url).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns the bytes of the `Cookie` field for a URL; `nil` without cookies.
    package func headerBytes(for url: HTTPURL) async -> [UInt8]? {
        guard policy.sendsCookies, !isEmpty else { return nil }
        await prepare()
        return store.header(for: url, isSecure: isSecure(url), now: now())
    }

    /// Stores the cookies of a response.
    /// - Parameters:
    ///   - values: The values of the response's `Set-Cookie` fields, separately and in order.
    ///   - url: The URL of the response.
    /// - Returns: The fields that were not stored, with the reasons; empty if the policy stores no cookies.
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

    /// Stores a cookie. It replaces a cookie with the same name, domain, ``Cookie/isHostOnly`` and path.
    ///
    /// An expired cookie only removes that cookie. A cookie for a public suffix is sent to that host only.
    public func set(_ cookie: Cookie) async {
        await prepare()
        store.insert(cookie, now: now())
        noteCount()
    }

    /// Removes the cookie with the same name, domain, ``Cookie/isHostOnly`` and path.
    public func remove(_ cookie: Cookie) async { await remove { $0.isSame(as: cookie) } }

    /// Removes the cookies that pass a test.
    /// - Returns: The number of removed cookies.
    @discardableResult public func remove(where isUnwanted: @Sendable (Cookie) -> Bool) async -> Int {
        await prepare()
        defer { noteCount() }
        return store.remove(where: isUnwanted)
    }

    /// Removes the cookies of a domain and of all names below it.
    /// - Returns: The number of removed cookies.
    @discardableResult public func removeCookies(domain: String) async -> Int {
        guard let host = CookieHost(domain) else { return 0 }
        return await remove { CookieHost(canonical: $0.domain).matches(domain: host.text) }
    }

    /// Removes the session cookies.
    /// - Returns: The number of removed cookies.
    @discardableResult public func removeSessionCookies() async -> Int { await remove(where: \.isSessionCookie) }

    /// Removes all cookies. The file is not changed before ``save()``.
    public func removeAll() async { await remove { _ in true } }

    // MARK: File

    /// Reads the file, unless it was read already. Each use of the jar tries this until it succeeds, and treats an
    /// unreadable file as empty; only this function and ``save()`` throw the error.
    ///
    /// A file that does not exist counts as empty. Cookies that are already in the jar are not replaced.
    /// - Returns: A report on the cookies in the file; empty if the file was read before.
    /// - Throws: ``StorageError`` if the file exists but cannot be read, or is larger than 64 MiB.
    @discardableResult public func load() async throws(StorageError) -> CookieImportReport {
        await publicSuffixes.prepare()
        guard let file, !isLoaded else { return CookieImportReport() }
        let source = CookieFile(path: file.string)
        let content = try await BlockingThreadPool.shared.run(throwing: source.read)
        // Another call may have read the file, and cookies may have been stored since.
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

    /// Writes the cookies that have not expired to the file, if any cookie changed since the file was read or written.
    /// Session cookies are written only with `keepsSessionCookies`.
    ///
    /// The file is replaced as a whole once everything is on disk, also if the caller is cancelled. Without a file,
    /// nothing is done.
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

    /// Imports a cookie file in the format of Netscape and curl. Malformed lines are skipped and listed in the report.
    @discardableResult public func importNetscape(_ text: some Sequence<UInt8> & Sendable) async -> CookieImportReport {
        await prepare()
        defer { noteCount() }
        return insert(NetscapeCookieFile.cookies(Array(text), now: now()))
    }

    /// Imports a cookie file in the format of Netscape and curl.
    /// - Throws: ``StorageError`` if the file cannot be read, or is larger than 64 MiB.
    @discardableResult public func importNetscape(contentsOf path: some FilePathConvertible) async throws(StorageError)
        -> CookieImportReport
    {
        let name = path.filePath.string
        let text = try await BlockingThreadPool.shared.run { () throws(StorageError) in
            try FileReader(path: name).contents(limit: CookieFile.byteLimit)
        }
        return await importNetscape(text)
    }

    /// Returns all cookies that have not expired, including session cookies, in the format of Netscape and curl. The
    /// format cannot represent a tab in a name, a value or a path: such cookies are omitted.
    public func exportNetscape() async -> [UInt8] { NetscapeCookieFile.text(of: await allCookies) }

    /// Writes all cookies that have not expired to a file in the format of Netscape and curl. The file replaces an
    /// existing one, and is readable only by its owner.
    public func exportNetscape(to path: some FilePathConvertible) async throws(StorageError) {
        let text = await exportNetscape()
        try await write(to: path.filePath) { text }
    }

    // MARK: Private functions

    /// Waits until the public suffixes and the file were read.
    private func prepare() async {
        guard !isReady else { return }
        // The error is ignored here: `load` and `save` throw it. The next use tries again, because the cause may be
        // transient, such as too many open files.
        _ = try? await load()
        // Set last, so that concurrent callers wait for the file, too.
        isPrepared.store(isLoaded, ordering: .releasing)
        noteCount()
    }

    private func insert(_ content: CookieFile.Content) -> CookieImportReport {
        let now = now()
        let stored = content.cookies.count { store.insert($0, now: now) }
        return CookieImportReport(
            stored: stored, dropped: content.cookies.count - stored, malformedLines: content.malformedLines)
    }

    private func noteCount() { emptiness.store(isLoaded && store.count == 0, ordering: .releasing) }

    private func isSecure(_ url: HTTPURL) -> Bool {
        url.scheme == .https || (trustsLoopback && CookieHost(url).isLoopback)
    }
}
