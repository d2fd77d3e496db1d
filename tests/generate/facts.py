"""The words of the polarity paradigms, written independently of the lexicon in order to check it.

Nouns stand under what they denote, verbs with what can be done so. Nothing here is read by the package.
"""

from __future__ import annotations

IRREGULAR_PLURALS = {
    "man": "men", "woman": "women", "child": "children", "wife": "wives", "midwife": "midwives", "thief": "thieves",
    "wolf": "wolves", "calf": "calves", "goose": "geese", "mouse": "mice", "ox": "oxen", "sheep": "sheep",
    "deer": "deer", "moose": "moose", "goldfish": "goldfish", "bonsai": "bonsai", "shelf": "shelves",
    "knife": "knives", "scarf": "scarves", "thesis": "theses", "crisis": "crises", "hypothesis": "hypotheses",
    "cactus": "cacti", "potato": "potatoes", "tomato": "tomatoes", "mango": "mangoes", "scissors": "scissors",
    "pliers": "pliers",
}  # fmt: skip

IRREGULAR_VERBS = """
forgive forgave forgiven; upset upset upset; teach taught taught; hurt hurt hurt; draw drew drawn; feed fed fed
catch caught caught; hear heard heard; see saw seen; leave left left; build built built; find found found
eat ate eaten; drink drank drunk; wear wore worn; buy bought bought; sell sold sold; steal stole stolen
lose lost lost; break broke broken; drive drove driven; ride rode ridden; read read read; write wrote written
sing sang sung; understand understood understood; win won won; cut cut cut; spin spun spun; bend bent bent
throw threw thrown; choose chose chosen; put put put; give gave given; set set set; think thought thought
go went gone; speak spoke spoken; sit sat sat; stand stood stood; run ran run; say said said; swear swore sworn
pay paid paid; forget forgot forgotten; hide hid hidden; hang hung hung; ring rang rung; sink sank sunk
burst burst burst; sweep swept swept; tear tore torn; lend lent lent; freeze froze frozen; grow grew grown
wake woke woken; sew sewed sewn; know knew known
"""
DOUBLED = """sip chop hug pet plan stop drop knit trim pop snap dim slam rip hum chat mop chip unplug cut sit run put
    set win upset forget spin"""

NOUNS = {
    "animal": """cat dog rabbit hamster parrot puppy kitten poodle terrier canary goldfish tortoise guinea-pig ferret
        beagle spaniel cow horse pig sheep goat chicken duck goose donkey pony lamb calf hen turkey mule rooster
        llama ox lion tiger bear wolf fox deer elephant giraffe zebra monkey gorilla kangaroo panda crocodile snake
        lizard frog turtle eagle owl hawk penguin swan dolphin whale shark seal otter squirrel raccoon hedgehog
        mouse rat bat beaver badger camel cheetah leopard moose rhinoceros crow sparrow pigeon woodpecker toad""",
    "place": """museum library hospital school restaurant bank hotel theater cinema church temple castle palace
        factory bakery bookstore pharmacy supermarket airport office gallery gym stadium mosque cathedral monastery
        cottage cabin mansion apartment warehouse laboratory clinic courthouse kindergarten dormitory cafe bar pub
        nightclub casino bookshop barn greenhouse lighthouse mill tower university college embassy prison police-station
        train-station post-office grocery-store art-gallery high-school shopping-mall town-hall observatory
        aquarium brewery distillery workshop studio hostel park garden beach forest lake river village island
        mountain valley canyon harbor playground market plaza zoo vineyard campsite farm meadow desert waterfall
        cave cemetery campus cliff hill city town neighborhood orchard golf-course""",
    "cooked": """soup stew pizza lasagna omelet curry burger sandwich salad casserole pancake steak dumpling burrito
        taco hot-dog meatball pork-chop sausage lobster kebab risotto breakfast dinner lunch roast waffle quesadilla""",
    "pastries": """cake pie cookie muffin cupcake croissant pastry bagel brownie doughnut tart pretzel scone biscuit
        cheesecake baguette""",
    "crop": """apple banana orange pear peach plum grape cherry strawberry lemon lime mango pineapple melon carrot
        potato tomato onion cucumber pepper mushroom cabbage lettuce radish turnip beet zucchini pumpkin avocado
        eggplant apricot fig blueberry raspberry""",
    "beverage": """cocktail smoothie milkshake lemonade espresso latte beer cider cappuccino martini soda milk tea
        coffee juice wine water""",
    "worn": """shirt jacket coat sweater dress skirt blouse vest suit uniform raincoat cardigan T-shirt tuxedo
        bathrobe gown kimono costume apron scarf hoodie blazer poncho hat shoe boot sandal glove belt sock necktie
        cap slipper sneaker mitten wig mask bonnet helmet shawl bow-tie""",
    "furnishing": """table chair sofa couch desk bed bookcase cabinet dresser wardrobe bench stool shelf armchair rug
        carpet mattress crib nightstand cupboard sideboard footstool coffee-table rocking-chair""",
    "tableware": """plate bowl cup mug glass vase saucer platter teapot pitcher jar goblet tray pot pan fork spoon
        knife wok bottle teacup""",
    "container": """bag box suitcase backpack basket purse briefcase trunk crate wallet handbag parcel package
        envelope chest""",
    "motorcar": """car truck van taxi bus limousine tractor ambulance jeep minivan pickup-truck school-bus sports-car
        bulldozer""",
    "bike": "bicycle motorcycle scooter tricycle moped tandem unicycle mountain-bike",
    "watercraft": "boat canoe kayak yacht sailboat raft ferry ship motorboat rowboat",
    "handtool": """hammer screwdriver wrench saw drill shovel rake ladder axe chisel broom bucket mop rope paintbrush
        pliers scissors crowbar hoe spade wheelbarrow hatchet toolbox flashlight tape-measure clamp lawnmower
        chainsaw sledgehammer""",
    "machine": """phone laptop computer camera printer television radio tablet watch clock calculator microphone
        speaker projector scanner keyboard toaster blender microwave dishwasher refrigerator vacuum-cleaner hair-dryer
        lamp heater fan washing-machine coffee-maker typewriter stereo telescope microscope""",
    "writing": """book novel textbook biography dictionary encyclopedia cookbook poem essay fairy-tale autobiography
        memoir play screenplay comic-book magazine newspaper diary guidebook thriller anthology letter report
        article contract email memo form map brochure recipe speech thesis questionnaire petition résumé application
        invitation postcard manuscript document newsletter proposal leaflet""",
    "show": """movie film documentary cartoon sitcom soap-opera western comedy drama trailer TV-show musical
        horror-movie music-video ballet opera""",
    "tune": """song ballad lullaby anthem hymn carol folk-song love-song symphony sonata concerto waltz melody tune
        march serenade prelude nocturne""",
    "image": """painting portrait drawing sketch photograph poster landscape mural watercolor engraving
        self-portrait""",
    "greenery": """rose tulip tree bush fern cactus orchid sunflower daisy hedge lily palm oak willow violet ivy
        bonsai daffodil houseplant rosebush""",
    "plaything": """doll teddy-bear puppet kite yo-yo balloon toy puzzle marble toy-train board-game rocking-horse
        dollhouse ball wheel snowball barrel beach-ball bubble tire water-balloon""",
    "valuable": """ring necklace bracelet earring brooch diamond pearl ruby emerald sapphire crown pendant medal
        gold-coin""",
    "musical_instrument": """piano guitar violin cello flute trumpet drum clarinet saxophone harp trombone banjo
        accordion oboe bassoon harmonica tuba ukulele viola""",
    "occasion": """party wedding concert meeting lecture conference festival parade ceremony exhibition funeral
        banquet picnic reception rehearsal trial auction seminar debate press-conference birthday-party recital
        fashion-show reunion""",
    "thought": """problem riddle mystery dilemma crisis disagreement conflict emergency equation difficulty question
        request complaint objection suggestion criticism accusation plan idea theory strategy policy reform decision
        rule law budget offer bill project hypothesis""",
    "competition": "game match tournament race championship contest",
    "fixture": """door gate window lid drawer curtain blind shutter stick branch twig wire string bell doorbell alarm
        light candle chandelier lantern floor sidewalk staircase kitchen-floor wall roof fence ice butter chocolate
        snow wax cheese""",
    "person": """actor actress waiter waitress man woman king queen businessman businesswoman policeman policewoman
        fireman landlord landlady salesman saleswoman monk nun duke duchess prince princess gentleman lady hostess
        heiress chairman fisherman craftsman sportsman sportswoman nobleman noblewoman boy girl child kid teenager
        pupil schoolboy schoolgirl toddler youngster accountant acrobat adviser agent ambassador analyst announcer
        apprentice archaeologist architect artist assistant astronaut astronomer athlete attorney auctioneer author
        babysitter baker banker barber bartender biologist boxer broker builder burglar butcher butler caretaker
        carpenter cashier celebrity cellist champion chauffeur chef chemist clerk climber clown coach colonel
        comedian composer conductor consultant cook counselor critic curator customer cyclist dancer dealer
        decorator dentist designer detective diplomat director diver doctor driver drummer economist editor
        electrician employee engineer executive expert farmer florist gardener geologist goalkeeper golfer governor
        graduate guard guest guide guitarist gymnast hairdresser historian host hunter illustrator immigrant
        inspector instructor interpreter inventor investor janitor jeweler jogger journalist judge juggler juror
        lawyer lecturer librarian lifeguard linguist locksmith magician mayor mechanic merchant messenger midwife
        miner minister model musician neurologist novelist nurse officer operator optician orphan painter paramedic
        passenger pastor patient pedestrian pharmacist philosopher photographer physicist pianist pilot playwright
        plumber poet police-officer politician porter president priest prisoner producer professor programmer
        prosecutor psychiatrist psychologist publisher rancher realtor receptionist referee refugee reporter
        researcher sailor scientist sculptor secretary senator sheriff shopkeeper singer skater skier soldier spy
        stylist supervisor surgeon swimmer tailor taxi-driver teacher technician tenant therapist thief tourist
        translator traveler treasurer trumpeter tutor umpire veterinarian violinist visitor volunteer voter
        watchmaker weaver witness worker wrestler writer zoologist""",
}
MASS = "milk tea coffee juice wine water ivy ice butter chocolate snow wax cheese"
NO_SINGULAR = {"scissors", "pliers"}

# What somebody can do to a person, to an animal, and so on; a verb may stand in several lines.
VERBS = {
    "person": """annoy amuse betray bother call comfort compliment confront contact criticize defend disappoint
        distract embarrass encourage follow forgive greet hug ignore impress insult interview invite irritate kiss
        mock offend pay phone please praise protect punish recognize rescue reward scare shock support surprise
        tease thank upset warn welcome hire fire sue blame question teach help hurt calm congratulate
        describe remember forget mention photograph chase hear see watch notice visit avoid approach find miss
        interrupt examine oppose wake talk-to talk-about listen-to look-at laugh-at wait-for care-for work-with
        argue-with flirt-with apologize-to smile-at shout-at complain-about worry-about think-about dream-about
        escape-from look-for search-for vote-for dance-with point-at stare-at lie-to write-to chat-with speak-to
        wave-at sit-near stand-behind run-to hide-from write-about read-about hear-about""",
    "animal": """follow protect rescue scare photograph draw adopt brush feed pet train raise catch chase see watch
        notice approach find film examine hunt look-at care-for look-for search-for point-at stare-at read-about
        learn-about""",
    "place": """describe remember mention photograph paint draw see visit leave enter explore tour avoid pass approach
        reach inspect manage build renovate recommend destroy talk-about look-at dream-about go-to walk-to
        drive-to travel-to return-to arrive-at work-at stay-at escape-from point-at run-to write-about read-about
        learn-about hear-about""",
    "cooked": """praise recommend eat devour cook serve taste order share buy sell burn enjoy choose complain-about
        pay-for""",
    "pastries": "eat devour bake slice serve taste order share buy sell",
    "crop": """eat devour peel chop slice grow serve taste buy sell wash rinse plant cut freeze boil fry roast
        harvest""",
    "beverage": "serve taste order drink sip pour spill pay-for",
    "worn": """wear buy sell wash iron fold mend knit sew borrow donate return repair dry pack ruin tear rip choose
        throw-away put-away give-away try-on pay-for""",
    "furnishing": "paint build buy sell donate polish dust assemble move scratch repair lift stand-behind",
    "tableware": "wash polish carry scratch break drop rinse dry shatter crack chip put-away knock-over",
    "container": """find buy sell hide lose steal move carry drop open close empty pack unpack lift borrow pick-up
        look-for search-for""",
    "motorcar": """photograph see notice inspect buy sell wash borrow lend steal move scratch repair drive park rent
        test pay-for""",
    "bike": """photograph see notice inspect buy sell wash borrow lend steal scratch repair rent ride
        test pay-for""",
    "watercraft": """photograph see notice inspect build buy sell wash borrow lend steal scratch repair rent sail
        test sink pay-for""",
    "handtool": "inspect find buy sell borrow lend return lose carry break drop use put-away look-for",
    "machine": """inspect buy sell borrow lend return steal repair break drop use charge unplug install test examine
        turn-off set-up""",
    "writing": """ignore criticize praise describe mention find recommend review share buy sell borrow lend donate
        return hide lose read write publish translate copy edit discuss study print burn sign enjoy understand
        reject present revise approve examine destroy throw-away give-away look-for search-for""",
    "show": """criticize praise describe remember mention see watch recommend review discuss enjoy direct choose
        talk-about laugh-at complain-about write-about hear-about""",
    "tune": "recognize remember hear write enjoy sing hum play compose record perform listen-to",
    "image": """recognize describe paint notice buy sell steal copy study print burn hang frame collect ruin explain
        examine look-at point-at stare-at""",
    "greenery": "photograph draw grow buy sell water plant trim",
    "plaything": """find share buy sell donate hide repair break roll pop burst spin collect throw pick-up throw-away
        put-away give-away""",
    "valuable": "find wear buy sell hide lose steal polish collect examine look-for search-for",
    "musical_instrument": "buy sell polish carry repair play collect tune",
    "occasion": """describe remember forget mention leave discuss enjoy attend organize plan miss cancel ruin
        interrupt film talk-about worry-about go-to arrive-at write-about read-about learn-about hear-about""",
    "thought": """ignore criticize defend praise support avoid discuss study solve consider answer reject present
        revise oppose approve explain talk-about complain-about worry-about think-about vote-for learn-about""",
    "competition": "criticize forget watch lose enjoy play organize cancel win",
    "fixture": "paint open close dim slam bend snap ring sweep mop melt",
}
SAYING = """think believe imagine suspect assume guess expect suppose say claim announce hint declare insist swear
        suggest report state argue assert pretend predict hope dream fear"""
ASKING = "wonder ask"
ADJECTIVES = """ambitious annoying bad beautiful big boring brave bright calm careful charming cheap cheerful clean
        clear clever close cold comfortable common complex complicated confusing creative crowded cruel curious cute
        dangerous delicious depressing difficult dirty dishonest eager elegant energetic exciting expensive famous
        fancy fashionable fast fierce foolish fragile fresh friendly funny generous gentle good handsome happy
        healthy heavy helpful honest hot humble hungry impatient important impressive intelligent interesting
        jealous kind large lazy light lonely long loud lovely loyal modern nervous new nice noisy old patient
        peaceful polite poor popular proud quiet rare refreshing reliable remote rich risky rude sad safe salty
        scary selfish sensible sensitive serious shabby sharp short shy silly simple slow small smart spicy strange
        strong stubborn sturdy sweet talented tall tasty thin thoughtful tiny tricky ugly unusual urgent useful
        valuable warm weak wild wise witty young"""
MORE_THAN_ER = """ambitious annoying beautiful boring careful charming cheerful comfortable common complex complicated
        confusing creative crowded curious dangerous delicious depressing difficult dishonest eager elegant
        energetic exciting expensive famous fashionable foolish fragile generous handsome helpful honest humble
        impatient important impressive intelligent interesting jealous loyal modern nervous patient peaceful polite
        popular refreshing reliable remote selfish sensible sensitive serious stubborn talented thoughtful unusual
        urgent useful valuable"""
AN_BY_SOUND = {"honest", "heiress", "hour"}
A_BY_SOUND = {"uniform", "university", "unicycle", "ukulele", "useful", "one"}

# Verbs after which any may be good without a licensor: what they mean is negative (avoid, cancel), or about what need
# not exist (look for, plan), or any is understood as all that there were (answer, put away).
FREE_CHOICE = """avoid ignore oppose reject cancel miss forget escape-from hide-from look-for search-for wait-for hunt
    plan consider dream-about think-about worry-about vote-for talk-about complain-about answer solve discuss explain
    approve welcome greet protect rescue reward punish warn blame help question defend support forgive repair mend
    revise inspect examine test use choose enjoy return hide lose pay-for sign collect donate share throw-away
    give-away put-away pick-up turn-off empty close burn destroy mention harvest unplug remember"""
# Whose past looks like the present.
SAME_PAST = "cut hurt put read set upset"
# What nobody does, or undergoes, twice.
ONCE = """eat devour drink sip pour spill bake cook fry boil roast peel chop slice cut buy sell adopt build renovate
    write publish burn break shatter crack chip sink destroy harvest plant donate throw-away give-away sew knit"""
