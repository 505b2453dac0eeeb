import Martlet
import SystemPackage

/// Where queues are, and how they are opened.
enum QueueDirectory {
    /// The folder of a queue: the one that was named, else that of the user (XDG Base Directory Specification).
    /// - Parameter variable: The environment.
    static func path(
        _ named: String?, variable: (String) -> String? = { Environment[$0] }
    ) throws(UsageError) -> FilePath {
        if let named {
            guard !named.isEmpty, !named.utf8.contains(0) else {
                throw UsageError("option --queue: takes a folder")
            }
            return FilePath(named)
        }
        // One that is not absolute is to be taken for none.
        if let folder = variable("XDG_STATE_HOME"), folder.hasPrefix("/") {
            return FilePath(folder).appending("martlet").appending("queue")
        }
        guard let home = variable("HOME"), home.hasPrefix("/") else {
            throw UsageError("there is no folder for a queue: give --queue DIR, or set HOME")
        }
        var path = FilePath(home)
        for name in [".local", "state", "martlet", "queue"] { path.append(name) }
        return path
    }

    /// Opens a queue.
    static func open(
        _ path: FilePath, session: HTTPSession, options: OfflineQueueOptions,
        credentials: OfflineCredentials? = nil
    ) async throws(UsageError) -> OfflineQueue {
        do {
            return try await OfflineQueue(
                session: session, directory: path, options: options, credentials: credentials)
        } catch {
            throw UsageError(ofQueue: error)
        }
    }

    /// Opens a queue that sends nothing, does something with it, closes it, and tells what was found in its folder.
    static func withIdleQueue<Value: Sendable>(
        _ path: FilePath, secretFields: Set<HTTPField.Name> = [], global: GlobalOptions,
        _ body: (OfflineQueue) async throws(UsageError) -> Value
    ) async throws(UsageError) -> Value {
        let queue = try await open(
            path, session: ProgramSessions.shared.make(),
            options: OfflineQueueOptions(secretFields: secretFields, isSending: false))
        let events = queue.events
        let result: Result<Value, UsageError>
        do throws(UsageError) {
            result = .success(try await body(queue))
        } catch {
            result = .failure(error)
        }
        await queue.close()
        for await event in events where isFinding(event) && global.tellsErrors {
            await Console.complain("martlet: \(QueueEventText.line(event))\n")
        }
        return try result.get()
    }

    /// Whether it is something that nobody asked for.
    private static func isFinding(_ event: OfflineEvent) -> Bool {
        switch event {
        case .setAside, .leftAlone, .fileFailed, .uncertain, .expired: true
        case .submitted, .attempt, .delivered, .postponed, .dead, .dropped, .drained: false
        }
    }
}
