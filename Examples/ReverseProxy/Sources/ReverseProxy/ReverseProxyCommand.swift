import ArgumentParser
import Hummingbird
import Logging
import Martlet

@main
struct ReverseProxyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reverse-proxy",
        abstract: "Forward requests to another server.",
        discussion:
            "Ctrl-C (or SIGTERM) stops accepting connections and ends when the running requests have ended.")

    @Argument(help: "The URL of the server, such as http://127.0.0.1:3000.")
    var upstream: String

    @Option(help: "The address to listen on.")
    var host = "127.0.0.1"

    @Option(help: "The port to listen on.")
    var port = 8080

    @Option(help: "The seconds to wait for the head of a response.")
    var timeout = 60

    func run() async throws {
        var timeouts = Timeouts()
        timeouts.head = .seconds(timeout)
        let proxy = ReverseProxy(to: try HTTPURL(upstream), timeouts: timeouts)
        let application = Application(
            responder: proxy,
            configuration: ApplicationConfiguration(
                address: .hostname(host, port: port), serverName: "reverse-proxy"),
            logger: Logger(label: "reverse-proxy"))
        try await application.runService()
    }
}
