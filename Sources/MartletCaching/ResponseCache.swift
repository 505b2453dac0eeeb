import MartletURL
public import MartletNetwork
public import MartletCore
import FoundationEssentials
public import MartletCache
import MartletStorage
import MartletTransport
import MartletWire
import Synchronization
public import SystemPackage

/// A private cache of responses (RFC 9111): in memory before on disk, each tier bounded, and each able to do without the
/// other.
///
/// It is given to sessions by ``SessionConfiguration/cache``, any number of them, and is safe to use from anywhere.
/// Processes may share a folder. What goes wrong with the disk never fails a request: what cannot be read is a miss, what
/// cannot be stored is not stored, and an event says so.
///
/// ```swift
/// configuration.cache = try .at("/var/cache/app", memory: .mebibytes(32), disk: .gibibytes(1))
/// ```
///
/// Bodies stream into it as their reader takes them, and are never held whole unless they are small. A body larger than an
/// eighth of the disk's limit (of the memory's, without a disk) is delivered and not stored.
public final class ResponseCache: Sendable {
    /// What a cache does beyond what messages ask for. The defaults are those of RFC 9111.
    public struct Options: Sendable {
        /// What goes first when there is no room; the least recently used by default.
        public var eviction = Eviction.leastRecentlyUsed
        /// For how long a stored response that has become stale stands in for an error, where neither it nor the request
        /// says (`stale-if-error`, RFC 5861 §4); `nil`, the default, for never. Whole seconds count.
        public var staleIfError: Duration?
        /// How long responses are fresh that say nothing of it; by the guess of RFC 9111 §4.2.2 by default.
        public var defaultFreshness = DefaultFreshness.none
        /// The most variants of one URL (`Vary`), 1…8; 8 by default.
        public var variantLimit = 8
        /// What tells when memory runs short, whereupon half of what is in memory goes, and all of it when that is critical;
        /// what is on no disk yet is written to it first. The machine's by default; `nil` for none.
        public var memoryPressure: MemoryPressureSource? = .system

        /// The defaults.
        public init() {}
    }

    /// What goes first when there is no room.
    public enum Eviction: String, Hashable, Sendable, CaseIterable {
        /// What was used longest ago.
        case leastRecentlyUsed
        /// What was not used since it was last passed over (SIEVE, NSDI 2024): better where much is asked for only once.
        case sieve
    }

    package let store: ResponseStore
    let policy: MartletCache.CachePolicy
    /// The folder; `nil` for memory alone.
    public let directory: FilePath?
    /// Counted by all who use it.
    private let counts = Mutex(Statistics())
    private let teller: CacheTeller
    private let work: Task<Void, Never>?

    /// A cache in a folder, which is made where it is missing, with a tier of memory before it.
    ///
    /// It serves at once: the index of a large folder is read behind its first answers.
    /// - Parameters:
    ///   - path: The folder. It must be its owner's alone (mode 0700), and new, empty, or a cache's. Files that others put
    ///     there later are left alone.
    ///   - memory: How much may be held in memory, 32 MiB by default; 0 for none.
    ///   - disk: How much may be occupied on disk, in allocated blocks; 256 MiB by default. It is never exceeded.
    /// - Throws: ``CacheDirectoryError``: the folder belongs to another user, others may read or write it, or it has other
    ///   files and is no cache's.
    public static func at(
        _ path: FilePath, memory: ByteCount = .mebibytes(32), disk: ByteCount = .mebibytes(256),
        options: Options = Options()
    ) throws(CacheDirectoryError) -> ResponseCache {
        try at(path, memory: memory, disk: disk, options: options, files: LinuxFileSystem())
    }

    package static func at(
        _ path: FilePath, memory: ByteCount, disk: ByteCount, options: Options, files: any FileSystem
    ) throws(CacheDirectoryError) -> ResponseCache {
        let teller = CacheTeller()
        let tier = try DiskCache(
            directory: path.string, limit: UInt64(disk.bytes), order: options.eviction.order, files: files
        ) { teller.tell(CacheEvent($0)) }
        return ResponseCache(memory: memory, disk: tier, directory: path, options: options, teller: teller)
    }

    /// A cache in memory alone, of 32 MiB by default.
    public static func memoryOnly(
        _ limit: ByteCount = .mebibytes(32), options: Options = Options()
    ) -> ResponseCache {
        ResponseCache(memory: limit, disk: nil, directory: nil, options: options, teller: CacheTeller())
    }

    private init(
        memory: ByteCount, disk: DiskCache?, directory: FilePath?, options: Options, teller: CacheTeller
    ) {
        self.teller = teller
        self.directory = directory
        let store = ResponseStore(memoryLimit: memory.bytes, disk: disk, order: options.eviction.order)
        self.store = store
        policy = MartletCache.CachePolicy(
            defaults: options.defaultFreshness, staleIfError: options.staleIfError?.wholeSeconds,
            variantLimit: min(options.variantLimit, 8))
        if let disk { BlockingWorkers.shared.submit { disk.load() } }
        work = options.memoryPressure.map { source in
            Task { [weak store] in
                for await level in source where level > .normal {
                    guard let store else { return }
                    await ResponseCache.relieve(store, level)
                }
            }
        }
    }

    deinit {
        work?.cancel()
        teller.end()
        // What memory alone has outlives it on disk; the index is written for the next who opens the folder.
        let store = store
        BlockingWorkers.shared.submit { store.flush() }
    }

    private static func relieve(_ store: ResponseStore, _ level: MemoryPressure) async {
        let target = level == .critical ? 0 : store.statistics.memory.byteCount / 2
        await BlockingWorkers.shared.run { store.trim(to: target) }
    }

    // MARK: Its owner's

    /// What happens in it, as an `AsyncSequence`.
    public var events: CacheEvents { CacheEvents(teller) }

    /// What it did so far, and what it holds.
    public var statistics: Statistics { counts.withLock { $0 }.with(store.statistics) }

    /// Removes all stored responses of a URL: all variants of it.
    ///
    /// What is being received of it is not stored, either.
    /// - Parameter partition: Whose, beside those that are everybody's; `nil`, the default, for all of them, by whatever
    ///   credential, partition, `Host` or server they are told apart. The head of each entry on disk is read for that.
    public func remove(_ url: HTTPURL, partition: String? = nil) async {
        let (store, url) = (store, url.absoluteForm)
        await BlockingWorkers.shared.run {
            if let partition {
                store.invalidate(CacheKey(url: url, partition: partition))
            } else {
                store.removeAll(of: url)
            }
        }
    }

    /// Removes everything.
    public func removeAll() async {
        let store = store
        await BlockingWorkers.shared.run { store.removeAll() }
    }

    /// Gives up what is held in memory, down to so many bytes, writing what is not yet on disk to it first.
    public func trimMemory(to limit: ByteCount = 0) async {
        let store = store
        await BlockingWorkers.shared.run { store.trim(to: limit.bytes) }
    }

    /// Writes what is in memory alone to disk, where there is one, and the index of that.
    ///
    /// Nothing is lost without it but the order in which entries were used last.
    public func flush() async {
        let store = store
        await BlockingWorkers.shared.run { store.flush() }
    }

    // MARK: What steps need

    /// Decides about answers.
    func decider(
        _ request: CacheRequest, after decision: CacheDecision, _ found: [StoredResponse]
    ) -> ResponseDecider {
        ResponseDecider(request, after: decision, variants: found.map(\.variant), policy: policy)
    }

    /// Carries out what an answer means for what is stored. The response does not wait for a folder that is held up.
    /// - Returns: The responses with new heads, by index.
    func carryOut(
        _ decided: ResponseDecision, _ found: [StoredResponse], _ epoch: InvalidationLedger.Epoch,
        on loop: EventLoop
    ) async -> [Int: StoredResponse] {
        guard !decided.freshened.isEmpty || !decided.removed.isEmpty else { return [:] }
        let carriedOut = await StoreWork.run(in: store, on: loop) {
            var freshened: [Int: StoredResponse] = [:]
            for one in decided.freshened {
                freshened[one.variant] = self.store.freshen(found[one.variant], to: one.head, epoch: epoch)
            }
            self.removeNow(decided.removed.map { found[$0] })
            return freshened
        }
        if let carriedOut { return carriedOut }
        var freshened: [Int: StoredResponse] = [:]
        for one in decided.freshened {
            freshened[one.variant] = StoredResponse(found[one.variant], head: one.head)
        }
        return freshened
    }

    /// Removes what another response says is out of date.
    func remove(_ responses: [StoredResponse], on loop: EventLoop) async {
        guard !responses.isEmpty else { return }
        _ = await StoreWork.run(in: store, on: loop) { self.removeNow(responses) }
    }

    /// The same at once; it blocks on files.
    func removeNow(_ responses: [StoredResponse]) {
        for response in responses { store.remove(response) }
        if !responses.isEmpty { count { $0.removals &+= UInt64(responses.count) } }
    }

    /// Counts what was done.
    func count(_ change: (inout Statistics) -> Void) { counts.withLock { change(&$0) } }

    /// Counts a request, by the figure of what answered it, and the bytes of a body that the cache delivered.
    func count(_ figure: WritableKeyPath<Statistics, UInt64>, served byteCount: UInt64 = 0) {
        count { counts in
            counts[keyPath: figure] &+= 1
            counts.bytesServed &+= byteCount
        }
    }

    /// Has a closure told which stored bodies are stored no longer, until it says that it does not want to know any more. It
    /// is called under locks: it must neither take long nor call the cache.
    func whenBodyEnds(_ listener: @escaping @Sendable (UInt64) -> Bool) {
        store.whenRepresentationEnds { _, representation in listener(representation) }
    }

    func tell(_ event: CacheEvent) { teller.tell(event) }

    /// Makes something of a secret that may be written down and still tells two of them apart.
    static func conceal(_ secret: String) -> String {
        // The prefix keeps it from being the digest of anything else.
        let digest = try? MessageDigest.digest(.sha256, of: "martlet cache: \(secret)".utf8)
        // Without the function nothing is ever found again, which is safe.
        guard let digest else { return String(UInt64.random(in: 0 ... .max), radix: 16) }
        return String(decoding: MessageDigest.hexadecimal(digest.prefix(16)), as: UTF8.self)
    }
}

extension ResponseCache.Eviction {
    var order: EvictionOrder {
        switch self {
        case .leastRecentlyUsed: .leastRecentlyUsed
        case .sieve: .sieve
        }
    }
}

extension SessionConfiguration {
    /// Where connections for a URL lead by what the caller says of it: a socket's path, another host or port, or given
    /// addresses; `nil` where they lead to where the URL says, whatever is said of others. A proxy looks names up itself, and
    /// given addresses count all the same: which proxy a call takes is not known here, and they cost a request at most.
    func otherPlace(of url: HTTPURL) -> String? {
        // A connector looks at none of these.
        guard connector == nil else { return nil }
        if let unixSocketPath { return "unix " + unixSocketPath }
        guard !connectRedirections.isEmpty || !resolveOverrides.isEmpty else { return nil }
        var (host, port) = (url.host, url.port)
        if let redirection = connectRedirections.first(where: { $0.applies(to: host, port: port) }) {
            (host, port) = (redirection.toHost ?? host, redirection.toPort ?? port)
        }
        let given =
            resolveOverrides[Endpoint(host: host, port: port)]
            ?? resolveOverrides[Endpoint(host: "*", port: port)]
        guard given != nil || host != url.host || port != url.port else { return nil }
        return (["\(host) \(port)"] + (given ?? []).map(\.description)).joined(separator: " ")
    }
}

/// A wall clock that nobody sets: it begins at what the machine's says, and goes on as time passes.
///
/// What a process stored it knows the age of, whatever becomes of the machine's clock meanwhile: a clock that is set forward
/// makes nothing stale, and one that is set back keeps nothing fresh. Other processes see its stamps and compare them with
/// clocks of their own: what comes from their future is validated.
struct SteadyWallClock: Sendable {
    /// What the wall clock said when it began.
    let beginning: WallTime
    /// The same instant, by a clock that goes on while the computer is suspended.
    let instant: MonotonicTime

    /// The moment at an instant; one before the beginning is the beginning.
    func time(at now: MonotonicTime) -> WallTime {
        let passed = now > instant ? (now.nanoseconds - instant.nanoseconds) / 1_000_000 : 0
        let (sum, overflows) = beginning.milliseconds.addingReportingOverflow(Int64(passed))
        return WallTime(milliseconds: overflows ? .max : sum)
    }

    /// That of this process, which begins when it is first asked.
    static let ofProcess = SteadyWallClock(
        beginning: WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)), instant: .sinceBoot())
}

extension WallTime {
    /// The present, by the clock of the process's caches: see ``SteadyWallClock``.
    package static var now: WallTime { SteadyWallClock.ofProcess.time(at: .sinceBoot()) }
}
