import MartletTransport
import Testing

@Suite("Mailboxes")
struct MailboxTests {
    @Test("Values are delivered in the order in which they were sent, followed by the end")
    func order() async {
        let mailbox = Mailbox<Int>()
        for number in 1...3 { mailbox.send(number) }
        mailbox.close()
        mailbox.send(4)
        for number in 1...3 { #expect(await mailbox.next() == number) }
        #expect(await mailbox.next() == nil)
        #expect(await mailbox.next() == nil)
    }

    @Test("A waiter receives the next value or the end")
    func waits() async {
        let mailbox = Mailbox<Int>()
        async let taken = [mailbox.next(), mailbox.next(), mailbox.next()]
        for number in 1...2 {
            await Task.yield()
            mailbox.send(number)
        }
        await Task.yield()
        mailbox.close()
        #expect(await taken == [1, 2, nil])
    }

    @Test("A cancelled task receives a value that is available and then nothing, and later values go to others")
    func cancelled() async {
        let mailbox = Mailbox<Int>()
        mailbox.send(1)
        let cancelled = Task {
            while !Task.isCancelled { await Task.yield() }
            return [await mailbox.next(), await mailbox.next()]
        }
        cancelled.cancel()
        #expect(await cancelled.value == [1, nil])
        mailbox.send(2)
        #expect(await mailbox.next() == 2)
    }

    @Test("Cancellation ends the cancelled wait and no other")
    func cancelledWait() async {
        for _ in 0..<200 {
            let mailbox = Mailbox<Int>()
            let cancelled = Task { await mailbox.next() }
            let patient = Task { await mailbox.next() }
            await Task.yield()
            cancelled.cancel()
            #expect(await cancelled.value == nil)
            mailbox.send(1)
            #expect(await patient.value == 1)
        }
    }

    @Test("Each value from many senders is received once, also while receivers are cancelled")
    func concurrent() async {
        let mailbox = Mailbox<Int>()
        let taken = await withTaskGroup(of: [Int].self) { group in
            let takers = (0..<8).map { _ in
                Task {
                    var taken: [Int] = []
                    while let number = await mailbox.next() { taken.append(number) }
                    return taken
                }
            }
            for sender in 0..<10 {
                group.addTask {
                    for number in 0..<200 { mailbox.send(sender * 200 + number) }
                    return []
                }
            }
            for taker in takers.prefix(4) { taker.cancel() }
            for await _ in group {}
            mailbox.close()
            var all: [Int] = []
            for taker in takers { all += await taker.value }
            return all
        }
        #expect(taken.sorted() == Array(0..<2_000))
    }

    @Test("Posting without a waiter returns no continuation to resume")
    func posting() async {
        let mailbox = Mailbox<Int>()
        #expect(mailbox.post(1).map { _ in true } == nil)
        #expect(await mailbox.next() == 1)
        mailbox.close()
        #expect(mailbox.post(2).map { _ in true } == nil)
        #expect(await mailbox.next() == nil)
    }
}
