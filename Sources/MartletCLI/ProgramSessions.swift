import Martlet
import Synchronization

/// The sessions of the program. All of them end before it exits, so that none of their calls runs while the process is taken
/// down.
final class ProgramSessions: Sendable {
    /// Those of this process.
    static let shared = ProgramSessions()

    /// Guards the sessions: commands make them, the end of the program takes them.
    private let sessions = Mutex<[WeakSession]>([])

    /// Makes a session. A session that nobody keeps any more is forgotten.
    func make(_ configuration: SessionConfiguration = .default) -> HTTPSession {
        let session = HTTPSession(configuration: configuration)
        sessions.withLock { sessions in
            sessions.removeAll { !$0.isAlive }
            sessions.append(WeakSession(session))
        }
        return session
    }

    /// Cancels what runs, and returns when it has ended.
    func end() async {
        let sessions = sessions.withLock { sessions in
            defer { sessions = [] }
            return sessions
        }
        for session in sessions { await session.invalidateAndCancel() }
    }
}
