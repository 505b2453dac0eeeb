import Martlet
import Testing

@testable import MartletCLI

@Suite("Options of queue add and queue run")
struct QueueOptionTests {
    private func add(_ words: String...) throws(UsageError) -> TransferOptions {
        var reader = CommandLineParser(QueueAddCommand.options)
        try reader.read(words)
        return reader.groups[0]
    }

    private func run(_ words: String...) throws(UsageError) -> TransferOptions {
        var reader = CommandLineParser(
            QueueRunCommand.options)
        try reader.read(words)
        return reader.groups[0]
    }

    @Test("Each option of add sets its value")
    func own() throws {
        let group = try add(
            "--queue", "q", "--lane", "notes", "--tag", "n-1", "--key", "k", "--expires", "12h", "--copy",
            "--secret", "X-API-Key", "-b", "a=1", "-d", "x=1", "http://h/")
        let wish = group.queue
        let submission = wish.submission
        #expect(wish.directory == "q" && submission.lane == "notes" && submission.tag == "n-1")
        #expect(submission.key == .value("k"))
        #expect(submission.timeToLive == .seconds(43_200) && submission.filePolicy == .copy)
        #expect(wish.secretNames == ["x-api-key"])
        #expect(group.cookies == ["a=1"] && group.data == [.data("x=1")])
        #expect(try add("--no-key", "http://h/").queue.submission.key == .none)
    }

    @Test(
        "The defaults are a random key, the origin's lane, the queue's expiry, and uncopied files"
    )
    func defaults() throws {
        let wish = try add("http://h/").queue
        let submission = wish.submission
        #expect(
            wish.directory == nil && submission.lane == nil && submission.tag == nil && submission.key == .automatic)
        #expect(submission.timeToLive == nil && submission.filePolicy == .reference && wish.secretNames.isEmpty)
        let run = try run()
        #expect(run.redirects.followsRedirects && !run.queue.endsWhenEmpty && !run.queue.isJSON)
        #expect(run.redirects.methodPreservingStatuses == [301])
    }

    @Test(
        "Durations are seconds, or have a unit letter",
        arguments: [
            ("90", 90), ("90s", 90), ("30m", 1800), ("12h", 43_200), ("7d", 604_800),
            ("36500d", 3_153_600_000),
        ])
    func lengths(_ text: String, _ seconds: Int64) throws {
        #expect(try OptionValues.length(text) == .seconds(seconds))
    }

    @Test(
        "An invalid duration is rejected with the name of the option",
        arguments: ["", "0", "0d", "-1", "d", "7w", "1.5h", "36501d", "99999999999999999999", "7 d", "7D"])
    func badLengths(_ text: String) {
        #expect(throws: UsageError.self) { try OptionValues.length(text) }
        do throws(UsageError) {
            _ = try add("--expires", text)
        } catch {
            #expect(error.description.hasPrefix("option --expires: “\(text)”") && error.status == .usage)
        }
    }

    @Test(
        "add rejects options for sending, output or several URLs, by name and with the reason"
    )
    func rejectedByAdd() {
        for (option, reason) in [
            ("-L", "run"), ("-x", "run"), ("--cacert", "run"), ("-m", "run"), ("-n", "run"), ("-c", "run"),
            ("-o", "no meaning"), ("-i", "no meaning"), ("-w", "no meaning"), ("--compressed", "no meaning"),
            ("--cache", "no meaning"),
            ("--retry", "no meaning"), ("--http1.0", "no meaning"), ("--next", "one request"), ("--har", "no meaning"),
            ("--ntlm", "not supported"), ("--until-empty", "unknown"),
        ] {
            do throws(UsageError) {
                _ = try add(option, "x", "http://h/")
                Issue.record("\(option) was taken")
            } catch {
                #expect(error.description.hasPrefix("option \(option): "), "\(error)")
                #expect(error.description.contains(reason) && error.status == .usage, "\(error)")
            }
        }
    }

    @Test(
        "run rejects options that belong to a request or to the queue, by name and with the reason")
    func rejectedByRun() {
        for (option, reason) in [
            ("-d", "queue add"), ("-X", "queue add"), ("-T", "queue add"), ("--url", "queue add"),
            ("-I", "queue add"),
            ("--retry", "by itself"), ("--location-trusted", "credentials"), ("-o", "no meaning"),
            ("--next", "no meaning"), ("--lane", "unknown"), ("-M", "not supported"), ("-C", "no meaning"),
        ] {
            do throws(UsageError) {
                _ = try run(option, "x")
                Issue.record("\(option) was taken")
            } catch {
                #expect(error.description.hasPrefix("option \(option): "), "\(error)")
                #expect(error.description.contains(reason) && error.status == .usage, "\(error)")
            }
        }
    }

    @Test("Every option of get is known to add and run")
    func complete() {
        for option in OptionTable.all {
            #expect(QueueAddCommand.options[option.name] != nil, "\(option.name)")
            #expect(QueueRunCommand.options[option.name] != nil, "\(option.name)")
            guard let letter = option.letter else { continue }
            #expect(QueueAddCommand.options[letter] != nil, "\(letter)")
            #expect(QueueRunCommand.options[letter] != nil, "\(letter)")
        }
    }

    @Test("run accepts credentials, cookies, proxies, TLS and timeouts as get does")
    func shared() throws {
        let group = try run(
            "-u", "me:secret", "--digest", "-b", "jar.txt", "-c", "out.txt", "-x", "http://p:1", "--cacert",
            "ca.pem",
            "-m", "5", "--json", "--until-empty", "--accept-redirects", "-H", "X-Key: 1", "--no-location",
            "-v")
        #expect(group.user == "me:secret" && group.offersDigest)
        #expect(group.cookieFiles == ["jar.txt"] && group.cookieOutput == "out.txt")
        #expect(group.proxy.address == "http://p:1" && group.authorityFile == "ca.pem")
        #expect(group.totalTimeout == .seconds(5) && group.headerLines == ["X-Key: 1"])
        #expect(group.queue.isJSON && group.queue.endsWhenEmpty && group.global.isVerbose)
        #expect(group.queue.acceptsRedirectedResults)
        #expect(!group.redirects.followsRedirects)
    }

    @Test("Impossible values are rejected with the name of the option")
    func badValues() {
        for words in [
            ["--lane", ""], ["--key", ""], ["--key", "ä"], ["--key", "a\nb"], ["--secret", "a b"],
            ["-b", "file"],
        ] {
            do throws(UsageError) {
                _ = try add(words[0], words[1])
                Issue.record("\(words) was taken")
            } catch {
                #expect(
                    error.description.hasPrefix("option \(words[0]): ") && error.status == .usage, "\(error)")
            }
        }
    }
}
