import ArgumentParser

/// `martlet queue`: requests that are kept until they are delivered.
struct QueueCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "queue",
        abstract:
            "Keep requests until they are delivered, over failures of the network and ends of the program.",
        discussion: """
            “martlet queue add” writes a request to a folder, and “martlet queue run” sends what is there: the requests to an \
            origin, or in a lane, one after the other, each again until it is taken. One command at a time has the folder.

            EXIT CODES, besides those of get:
            0: done; all was delivered
            2: a mistake on the command line, or there is no such request
            22: a request became a dead letter, uncertain, or too old, in this run
            26: something in the folder could not be read
            103: requests are left, which another run will send
            105: there is no room for the request
            106: another command or program has the folder
            """,
        subcommands: [
            QueueAddCommand.self, QueueListCommand.self, QueueRunCommand.self, QueueRetryCommand.self,
            QueueDropCommand.self,
        ])
}
