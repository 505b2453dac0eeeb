import MartletURL
public import MartletCore
package import FoundationEssentials
import HTTPTypes
public import MartletStorage
import MartletTransport
public import SystemPackage
import Synchronization

/// Cookies: what servers asked to be told again, kept and sent as RFC 6265bis says.
///
/// A session that has one sends what is in it and stores what comes, with every request it makes, redirects
/// included. Several sessions can share one. Cookies are found by the host of the address, whatever the
/// `Host` field says.
///
/// Requests count as caused by the user: `SameSite` is kept and keeps nothing back. A cookie that is `Secure`
/// is taken and sent over https only, also on localhost, where browsers and curl trust http as well; RFC
/// 6265bis leaves to the client what counts as secure, and `trustsLoopback` makes it as they do.
///
/// With a file, cookies are read from it before the first is looked up, and written to it by ``save()``
/// alone. It is replaced as a whole, readable by its owner only; of a damaged one each line that is whole
/// counts.
public actor CookieJar {
    /// What is sent and stored.
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
    /// Whether the public suffixes are there to be asked, and the file was tried once. Written within the actor.
    private nonisolated let isPrepared = Atomic(false)
    /// Whether the file was read, or there is none.
    private var isLoaded: Bool
    /// The store's revision that is in the file.
    private var savedRevision: UInt64 = 0
    /// Whether there is nothing to send; false also while a file is unread. Written within the actor.
    private nonisolated let emptiness: Atomic<Bool>

    /// Files are written by one thread, in the order they were asked to be.
    private static let writer = BlockingWorkers(threadLimit: 1)

    /// A jar without a file, or with one.
    ///
    /// - Parameters:
    ///   - file: where cookies are kept between runs; `nil` for in memory only. Nothing is read yet.
    ///   - keepsSessionCookies: whether those without an end are written to the file, too; default no.
    ///   - policy: what is sent and stored; default both.
    ///   - publicSuffixes: for which domains nobody may set cookies; default the machine's list.
    ///   - limits: how much is taken and given.
    ///   - trustsLoopback: whether http to `localhost`, names below it, 127.0.0.0/8 and ::1 counts as secure;
    ///     default no.
    public init(
        file: FilePath? = nil, keepsSessionCookies: Bool = false, policy: CookiePolicy = .always,
        publicSuffixes: any PublicSuffixes = .system, limits: CookieLimits = CookieLimits(),
        trustsLoopback: Bool = false
    ) {
        self.init(
            file: file, keepsSessionCookies: keepsSessionCookies, policy: policy,
            publicSuffixes: publicSuffixes, limits: limits, trustsLoopback: trustsLoopback, now: { Date() })
    }

    /// A jar with a clock of its own.
    package init(
        file: FilePath? = nil, keepsSessionCookies: Bool = false, policy: CookiePolicy = .always,
        publicSuffixes: any PublicSuffixes = .system, limits: CookieLimits = CookieLimits(),
        trustsLoopback: Bool = false, now: @escaping @Sendable () -> Date
    ) {
        self.file = file
        self.keepsSessionCookies = keepsSessionCookies
        self.policy = policy
        self.publicSuffixes = publicSuffixes
        self.trustsLoopback = trustsLoopback
        self.now = now
        store = CookieStore(limits: limits, suffixes: publicSuffixes)
        isLoaded = file == nil
        emptiness = Atomic(file == nil)
    }

    // MARK: With requests

    /// Whether there is surely nothing to send: known without waiting, so that who has no cookies pays for
    /// none.
    ///
    /// It is false as long as a file has not been read.
    public nonisolated var isEmpty: Bool { emptiness.load(ordering: .acquiring) }

    /// Whether the public suffixes and the file were read, so that no code of the program is waited for.
    package nonisolated var isReady: Bool { isPrepared.load(ordering: .acquiring) }

    /// The cookies that go to an address, in the order they are sent: longer paths first, then earlier ones.
    public func cookies(for url: HTTPURL) async -> [Cookie] {
        guard policy.sendsCookies, !isEmpty else { return [] }
        await prepare()
        return store.cookies(for: url, isSecure: isSecure(url), now: now())
    }

    /// The value of the `Cookie` field for an address; `nil` when there is nothing to send.
    ///
    /// Bytes that are not UTF-8 are shown as U+FFFD here; a session sends them as they came.
    public func header(for url: HTTPURL) async -> String? {
        await headerBytes(for: url).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The bytes of the `Cookie` field for an address; nil when there is nothing to send.
    package func headerBytes(for url: HTTPURL) async -> [UInt8]? {
        guard policy.sendsCookies, !isEmpty else { return nil }
        await prepare()
        return store.header(for: url, isSecure: isSecure(url), now: now())
    }

    /// Stores what a response sets.
    ///
    /// - Parameters:
    ///   - values: the values of its `Set-Cookie` fields, each by itself and in order.
    ///   - url: the address that the response came from.
    /// - Returns: what was not stored, and why; nothing when the policy stores none.
    @discardableResult
    public func store(setCookieValues values: [String], from url: HTTPURL) async -> [CookieRefusal] {
        await store(setCookieBytes: values.map { Array($0.utf8) }, from: url)
    }

    /// Stores what a response sets, by the bytes of its fields.
    @discardableResult
    package func store(setCookieBytes values: [[UInt8]], from url: HTTPURL) async -> [CookieRefusal] {
        guard policy.storesCookies, !values.isEmpty else { return [] }
        await prepare()
        defer { noteCount() }
        return store.receive(values, from: url, isSecure: isSecure(url), now: now())
    }

    // MARK: By hand

    /// All cookies that have not ended, by domain.
    public var allCookies: [Cookie] {
        get async {
            await prepare()
            return store.allCookies(at: now())
        }
    }

    /// Puts a cookie in, in the place of one with the same name, domain and path.
    ///
    /// One that has expired removes that one. Where its domain is a public suffix it goes to that host alone.
    public func set(_ cookie: Cookie) async {
        await prepare()
        store.insert(cookie, now: now())
        noteCount()
    }

    /// Removes a cookie: the one that has the same name, domain, reach and path.
    public func remove(_ cookie: Cookie) async { await remove { $0.isSame(as: cookie) } }

    /// Removes the cookies that something is true of.
    /// - Returns: how many.
    @discardableResult
    public func remove(where isUnwanted: @Sendable (Cookie) -> Bool) async -> Int {
        await prepare()
        defer { noteCount() }
        return store.remove(where: isUnwanted)
    }

    /// Removes the cookies of a domain and of all names below it.
    /// - Returns: how many.
    @discardableResult
    public func removeCookies(domain: String) async -> Int {
        guard let host = CookieHost(domain) else { return 0 }
        return await remove { CookieHost(canonical: $0.domain).matches(domain: host.text) }
    }

    /// Removes the cookies without an end: those of the session that is over.
    /// - Returns: how many.
    @discardableResult
    public func removeSessionCookies() async -> Int {
        await remove(where: \.isSessionCookie)
    }

    /// Removes all cookies. The file keeps its own until ``save()``.
    public func removeAll() async { await remove { _ in true } }

    // MARK: The file

    /// Reads the file, unless it was read. The first use of the jar does so by itself, and takes a file that
    /// cannot be read for an empty one until this or ``save()`` says why.
    ///
    /// A file that does not exist is empty. Cookies that are there already stay in their place.
    ///
    /// - Returns: what was read; nothing the second time.
    /// - Throws: ``StorageError`` when the file exists and cannot be read, or is larger than 64 MiB.
    @discardableResult
    public func load() async throws(StorageError) -> CookieImportReport {
        await publicSuffixes.prepare()
        guard let file, !isLoaded else { return CookieImportReport() }
        let source = CookieFile(path: file.string)
        let content = try await BlockingWorkers.shared.run(throwing: source.read)
        // Another call may have read it in the meantime, and cookies been stored since.
        guard !isLoaded else { return CookieImportReport() }
        isLoaded = true
        let newer = store.allCookies(at: now())
        store = CookieStore(limits: store.limits, suffixes: publicSuffixes)
        var report = CookieImportReport(malformedLines: content.malformedLines)
        take(content.cookies, into: &report)
        if newer.isEmpty, report.dropped == 0 { savedRevision = store.revision }
        for cookie in newer { store.insert(cookie, now: now()) }
        noteCount()
        return report
    }

    /// Whether there are cookies that the file does not have, or the other way round.
    public var hasUnsavedChanges: Bool { file != nil && store.revision != savedRevision }

    /// Writes the cookies that have not ended to the file, if anything changed since it was read or written.
    ///
    /// The file is replaced as a whole when all is on the disk; until then it is what it was. A cancelled
    /// caller leaves it in one of the two states. Without a file nothing happens.
    ///
    /// - Throws: ``StorageError`` when the file cannot be read before it is replaced, or not be written.
    public func save() async throws(StorageError) {
        guard let file else { return }
        try await load()
        guard hasUnsavedChanges else { return }
        let revision = store.revision
        let cookies = store.allCookies(at: now()).filter { keepsSessionCookies || !$0.isSessionCookie }
        let path = file.string
        try await CookieJar.writer.run { () throws(StorageError) in
            try CookieFile.replace(path, with: CookieFile.text(of: cookies))
        }
        savedRevision = max(savedRevision, revision)
    }

    // MARK: Netscape's format

    /// Takes in a cookie file in the format of Netscape and curl.
    ///
    /// Lines that are no cookie are left out and named in the report.
    @discardableResult
    public func importNetscape(_ text: some Sequence<UInt8> & Sendable) async -> CookieImportReport {
        await prepare()
        let (cookies, malformed) = NetscapeCookieFile.cookies(Array(text), now: now())
        var report = CookieImportReport(malformedLines: malformed)
        take(cookies, into: &report)
        noteCount()
        return report
    }

    /// Takes in a cookie file in the format of Netscape and curl.
    ///
    /// - Throws: ``StorageError`` when it cannot be read, or is larger than 64 MiB.
    @discardableResult
    public func importNetscape(contentsOf path: FilePath) async throws(StorageError) -> CookieImportReport {
        let name = path.string
        let text = try await BlockingWorkers.shared.run { () throws(StorageError) in
            try FileReader(path: name).contents(limit: CookieFile.byteLimit)
        }
        return await importNetscape(text)
    }

    /// All cookies that have not ended, those of the session included, in the format of Netscape and curl; those with a tab in
    /// name, value or path have no place in it, and are left out.
    public func exportNetscape() async -> [UInt8] { NetscapeCookieFile.text(of: await allCookies) }

    /// Writes all cookies that have not ended to a file in the format of Netscape and curl, in the place of
    /// one that is there, readable by its owner only.
    public func exportNetscape(to path: FilePath) async throws(StorageError) {
        let text = await exportNetscape()
        let name = path.string
        try await CookieJar.writer.run { () throws(StorageError) in try CookieFile.replace(name, with: text) }
    }

    // MARK: Within

    /// Waits until public suffixes and file are read.
    private func prepare() async {
        guard !isReady else { return }
        // Why a file cannot be read is told by `load` and `save`.
        _ = try? await load()
        // Only now: whoever comes while the file is read waits for it, too.
        isPrepared.store(true, ordering: .releasing)
        noteCount()
    }

    private func take(_ cookies: [Cookie], into report: inout CookieImportReport) {
        let now = now()
        for cookie in cookies {
            if store.insert(cookie, now: now) { report.stored += 1 } else { report.dropped += 1 }
        }
    }

    private func noteCount() { emptiness.store(store.count == 0, ordering: .releasing) }

    private func isSecure(_ url: HTTPURL) -> Bool {
        url.scheme == .https || (trustsLoopback && CookieHost(url).isLoopback)
    }
}
