import Dispatch
import Glibc
import Martlet
import MartletTesting

/// A process that calls `exit` while calls set up TLS on other threads.
struct ExitWork: Sendable {
    /// The delay of the exit after the start of the first calls, in microseconds.
    let delay: UInt32

    /// Ends the process with status 0.
    func run() async throws -> Never {
        try await TestOrigin.withOrigin(.tls(), handler: .fixed(.text("x"))) { origin in
            let url = "https://127.0.0.1:\(origin.port)/"
            let delay = delay
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        // Each session loads the certificate authorities of the system and sets up its own context.
                        while true { _ = try? await HTTPSession(configuration: .ephemeral).get(url) }
                    }
                }
                // This is a separate thread: those of the pool are busy.
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
