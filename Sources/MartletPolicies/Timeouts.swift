import MartletTransport

/// The six timeouts of a call. Each is independent of the others; `nil` disables one.
///
/// A timeout that is not assigned is taken from the next place: that of a call from its host, that of a host from the session,
/// that of a session from the defaults below. An assigned `nil` is a value: it disables the timeout.
///
/// ```swift
/// configuration.timeouts.total = .seconds(60)
/// let response = try await session.get(url, options: .init { $0.timeouts.head = .seconds(5) })   // total: 60 s
/// ```
///
/// A timeout that is not assigned reads as its default. Timeouts are equal if the same ones are assigned, with the same values.
/// They are kept in nanoseconds, up to 292 years. The error of a timeout names it, the phase the call was in, and the time waited.
public struct Timeouts: Hashable, Sendable {
    /// A timeout in 8 bytes: options are copied often, and held by the frames of waiting calls.
    private struct Leaf: Hashable {
        /// `Int64.min` if it is not assigned, `Int64.max` if it is disabled.
        private var nanoseconds = Int64.min

        init() {}

        init(_ duration: Duration?) {
            nanoseconds = duration.map { min(max($0.wholeNanoseconds, Int64.min + 1), Int64.max - 1) } ?? Int64.max
        }

        func merged(over base: Leaf) -> Leaf { nanoseconds == Int64.min ? base : self }

        func duration(or standard: Duration?) -> Duration? {
            switch nanoseconds {
            case Int64.min: standard
            case Int64.max: nil
            default: .nanoseconds(nanoseconds)
            }
        }
    }

    private var poolWaitLeaf = Leaf()
    private var connectLeaf = Leaf()
    private var headLeaf = Leaf()
    private var idleLeaf = Leaf()
    private var unreadLeaf = Leaf()
    private var totalLeaf = Leaf()

    /// The wait for a connection to become free if the limits forbid opening one; no limit by default, since
    /// each call before is bounded by its own timeouts.
    public var poolWait: Duration? {
        get { poolWaitLeaf.duration(or: nil) }
        set { poolWaitLeaf = Leaf(newValue) }
    }

    /// Opening a connection: name, TCP, proxy and TLS together; 10 s by default (Go 30 s, curl 300 s).
    public var connect: Duration? {
        get { connectLeaf.duration(or: .seconds(10)) }
        set { connectLeaf = Leaf(newValue) }
    }

    /// The wait for the head of the response after the last byte of the request; 60 s by default.
    public var head: Duration? {
        get { headLeaf.duration(or: .seconds(60)) }
        set { headLeaf = Leaf(newValue) }
    }

    /// The maximum time for which the call waits for the peer to send or take a byte of a body; 60 s by default.
    ///
    /// It runs only while the program wants more: the time in which the program does not read is limited by ``unread``.
    public var idle: Duration? {
        get { idleLeaf.duration(or: .seconds(60)) }
        set { idleLeaf = Leaf(newValue) }
    }

    /// The maximum time between two reads of an opened body (``OpenResponse``), and before the first; 60 s by default.
    ///
    /// It limits the program, not the peer: a response that is kept and not read holds a connection. Other bodies have no such limit,
    /// since they end with their call. After it reading throws, and the connection is closed.
    public var unread: Duration? {
        get { unreadLeaf.duration(or: .seconds(60)) }
        set { unreadLeaf = Leaf(newValue) }
    }

    /// The whole call including the body; no limit by default.
    public var total: Duration? {
        get { totalLeaf.duration(or: nil) }
        set { totalLeaf = Leaf(newValue) }
    }

    /// Timeouts without any assigned value.
    public init() {}

    /// Creates timeouts. An argument that is not given is not assigned; `nil` disables its timeout.
    public init(
        poolWait: Duration? = Timeouts.inherited, connect: Duration? = Timeouts.inherited,
        head: Duration? = Timeouts.inherited, idle: Duration? = Timeouts.inherited,
        unread: Duration? = Timeouts.inherited, total: Duration? = Timeouts.inherited
    ) {
        let inherited = Timeouts.inherited
        if poolWait != inherited { self.poolWait = poolWait }
        if connect != inherited { self.connect = connect }
        if head != inherited { self.head = head }
        if idle != inherited { self.idle = idle }
        if unread != inherited { self.unread = unread }
        if total != inherited { self.total = total }
    }

    /// The default of an argument that was not given. No timeout is negative.
    @usableFromInline static let inherited: Duration? = .seconds(Int64.min)

    /// These timeouts, and those of a base that are not assigned here.
    public func merged(over base: Timeouts) -> Timeouts {
        var merged = Timeouts()
        merged.poolWaitLeaf = poolWaitLeaf.merged(over: base.poolWaitLeaf)
        merged.connectLeaf = connectLeaf.merged(over: base.connectLeaf)
        merged.headLeaf = headLeaf.merged(over: base.headLeaf)
        merged.idleLeaf = idleLeaf.merged(over: base.idleLeaf)
        merged.unreadLeaf = unreadLeaf.merged(over: base.unreadLeaf)
        merged.totalLeaf = totalLeaf.merged(over: base.totalLeaf)
        return merged
    }

    /// The defaults, assigned.
    package static var standard: Timeouts {
        let defaults = Timeouts()
        return Timeouts(
            poolWait: defaults.poolWait, connect: defaults.connect, head: defaults.head, idle: defaults.idle,
            unread: defaults.unread, total: defaults.total)
    }
}

/// Timeouts that are not assigned are not encoded, and disabled ones are null.
extension Timeouts: Codable {
    private enum CodingKeys: String, CodingKey, CaseIterable { case poolWait, connect, head, idle, unread, total }

    private static func place(_ key: CodingKeys) -> WritableKeyPath<Timeouts, Leaf> {
        switch key {
        case .poolWait: \.poolWaitLeaf
        case .connect: \.connectLeaf
        case .head: \.headLeaf
        case .idle: \.idleLeaf
        case .unread: \.unreadLeaf
        case .total: \.totalLeaf
        }
    }

    /// Decodes timeouts; one that is missing is not assigned.
    /// - Throws: `DecodingError.dataCorrupted` for a negative one.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        for key in CodingKeys.allCases where container.contains(key) {
            self[keyPath: Timeouts.place(key)] = Leaf(try container.duration(key))
        }
    }

    /// Encodes the assigned timeouts.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        for key in CodingKeys.allCases {
            let leaf = self[keyPath: Timeouts.place(key)]
            if leaf != Leaf() { try container.encode(leaf.duration(or: nil), forKey: key) }
        }
    }
}

extension Timeouts: CustomReflectable {
    /// The timeouts by name.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "poolWait": poolWait as Any, "connect": connect as Any, "head": head as Any, "idle": idle as Any,
                "unread": unread as Any, "total": total as Any,
            ])
    }
}
