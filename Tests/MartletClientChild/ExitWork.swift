import Dispatch
import Glibc
import Martlet
import MartletTesting

/// A process that calls `exit` while calls set up TLS on other threads.
struct ExitWork: Sendable {
    /// How long after the first calls began it exits, in microseconds.
    let delay: UInt32

    /// Ends the process with status 0.
    func run() async throws -> Never {
        try await TestOrigin.withOrigin(.tls(), handler: .fixed(.text("x"))) { origin in
            let url = "https://127.0.0.1:\(origin.port)/"
            let delay = delay
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        // Each session loads the system's authorities and sets up a context of its own.
                        while true { _ = try? await HTTPSession(configuration: .ephemeral).get(url) }
                    }
                }
                // A thread of its own: the pool's are busy.
                DispatchQueue(label: "exit").async {
                    usleep(delay)
                    exit(0)
                }
                await group.waitForAll()
            }
        }
        exit(1)
    }
}
