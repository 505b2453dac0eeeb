import MartletTransport

/// The six timeouts of a call. Each is independent of the others; `nil` disables it.
///
/// A timeout that is not assigned is inherited: a call inherits from its host, a host from the session, and a session
/// from the defaults below. An assigned `nil` is a value: it disables the timeout.
///
/// ```swift
/// configuration.timeouts.total = .seconds(60)
/// let options = RequestOptions { $0.timeouts.head = .seconds(5) }  // total stays 60 s
/// ```
///
/// Reading a timeout that is not assigned returns its default. Two values are equal if the same timeouts are assigned,
/// with the same durations. Durations are stored in nanoseconds, up to 292 years. The error of an expired timeout names
/// the timeout, the phase of the call, and the duration of the wait.
public struct Timeouts: Hashable, Sendable {
    /// A timeout in 8 bytes, because options are copied often, and are in the stack frames of waiting calls.
    private struct Leaf: Hashable {
        /// The duration in nanoseconds. `Int64.min` if it is not assigned, `Int64.max` if it is disabled.
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

    /// The maximum wait for a free connection if the limits do not allow a new one; no limit by default, because the
    /// calls that hold the connections have their own timeouts.
    public var poolWait: Duration? {
        get { poolWaitLeaf.duration(or: nil) }
        set { poolWaitLeaf = Leaf(newValue) }
    }

    /// The maximum time for name resolution, TCP, proxy and TLS together; 10 s by default (Go 30 s, curl 300 s).
    public var connect: Duration? {
        get { connectLeaf.duration(or: .seconds(10)) }
        set { connectLeaf = Leaf(newValue) }
    }

    /// The maximum wait for the head of the response after the last byte of the request; 60 s by default.
    public var head: Duration? {
        get { headLeaf.duration(or: .seconds(60)) }
        set { headLeaf = Leaf(newValue) }
    }

    /// The maximum wait for the peer to send or accept a byte of a body; 60 s by default.
    ///
    /// It runs only while the program reads or writes a body: ``unread`` limits the time without a read.
    public var idle: Duration? {
        get { idleLeaf.duration(or: .seconds(60)) }
        set { idleLeaf = Leaf(newValue) }
    }

    /// The maximum time between two reads of an opened body (``OpenResponse``), and before the first; 60 s by default.
    ///
    /// It limits the program, not the peer, because an unread response holds a connection; other bodies end with their
    /// call. After the timeout the connection is closed, and reading throws an error.
    public var unread: Duration? {
        get { unreadLeaf.duration(or: .seconds(60)) }
        set { unreadLeaf = Leaf(newValue) }
    }

    /// The maximum duration of the call, including the body; no limit by default.
    public var total: Duration? {
        get { totalLeaf.duration(or: nil) }
        set { totalLeaf = Leaf(newValue) }
    }

    /// Creates timeouts without assigned values.
    public init() {}

    /// Creates timeouts. An omitted argument is not assigned; `nil` disables its timeout.
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

    /// The marker for an omitted argument. No timeout is negative.
    @usableFromInline static let inherited: Duration? = .seconds(Int64.min)

    /// Returns these timeouts, with those that are not assigned here taken from `base`.
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

    /// The default timeouts, all of them assigned.
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

    /// Decodes timeouts; a missing one is not assigned.
    /// - Throws: `DecodingError.dataCorrupted` for a negative duration.
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
    /// The mirror, with the timeouts by name.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "poolWait": poolWait as Any, "connect": connect as Any, "head": head as Any, "idle": idle as Any,
                "unread": unread as Any, "total": total as Any,
            ])
    }
}
