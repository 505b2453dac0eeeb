import Synchronization

/// Something that works on behalf of a session and is found by it, without being kept alive.
final class SessionCompanion: Sendable {
    private struct Reference: Sendable {
        weak var object: (any AnyObject & Sendable)?
    }

    /// Guards the reference: who opens it, and who looks for it.
    private let reference = Mutex(Reference())

    init() {}

    /// The one that was named last, as long as somebody keeps it.
    var object: (any AnyObject & Sendable)? {
        get { reference.withLock { $0.object } }
        set { reference.withLock { $0.object = newValue } }
    }
}

extension HTTPSession {
    /// What was named to work on behalf of this session and of its views; `nil` where nothing was, or nobody keeps it.
    package nonisolated func companion<Object: AnyObject & Sendable>(as type: Object.Type) -> Object? {
        core.companion.object as? Object
    }

    /// Names what works on behalf of this session and of its views.
    package nonisolated func setCompanion(_ object: any AnyObject & Sendable) {
        core.companion.object = object
    }
}
