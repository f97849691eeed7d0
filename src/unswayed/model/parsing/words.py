"""The words that may stand around a label: data, one table per kind, one line or two per language.

POINTING words make a sentence a verdict ("better", "wähle", 正解); PLAIN words may stand beside them.
Whatever is in neither table (a negation, "worse", "if", a criterion) leaves a sentence unread. No
other rule knows a language, but for three short English patterns (`places._WITHDRAWS`, `labels`).
"""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


POINTING: Final = _words("""
better best say go going correct right rate winner wins win winning preferred preferable superior stronger strongest choose chose pick
select selected selection prefer vote verdict decision judgment judgement conclusion choice answer label result rating score grade level
mark preference chosen final overall rank solution option evaluation pick's besser beste besten bessere besseren richtig richtige korrekt
korrekte wähle entscheide urteil fazit antwort wahl ergebnis gewinner gewinnt bewertung note punktzahl stufe entscheidung endurteil
endergebnis gesamturteil bevorzuge überzeugender meilleure meilleur bonne correcte choisis réponse choix gagnant gagne décision préfère
mejor correcta correcto elijo escojo quedo prefiero respuesta veredicto elección decisión conclusión puntuación calificación ganador
ganadora gana nivel resultado opción melhor correta correto escolho prefiro resposta veredito escolha decisão conclusão pontuação nota
vencedor vencedora vence migliore corretta corretto scelgo preferisco risposta verdetto scelta decisione conclusione punteggio voto
vincitore vincitrice vince preferita лучше лучший лучшая правильный правильная верный выбираю ответ вердикт вывод выбор оценка решение
победитель побеждает итог краще кращий краща правильна відповідь обираю вибираю висновок вибір оцінка переможець 更好 最好 更佳 我选择 我選擇 较好 較好 正确
选择 我选 故选 选 選 答案 回答 判断 结论 結論 评分 得分 分数 等级 裁决 判定 最佳 更优 獲勝 获胜 胜出 正確 選擇 評分 更胜一筹 优于 胜者 裁定 更強 更优秀 優れています 優れている より良い より優れています 方が良い の方が良い ほうが良い
方がよい 正解 正しい 選びます 選択します 選ぶ 答え 解答 評価 スコア 点数 勝者 優秀 낫습니다 낫다 우수합니다 더 정답 선택합니다 선택 답변 답 판정 결론 점수 평가 최종 승자 정답은 고르겠습니다 أفضل الأفضل الصحيح الصحيحة
أختار الإجابة الجواب الحكم القرار النتيجة الدرجة التقييم الخيار الفائز बेहतर उत्तर सही निर्णय निष्कर्ष अंक चुनता चुनती चयन परिणाम विजेता
जवाब सर्वश्रेष्ठ הטובה יותר תשובה התשובה נכונה הנכונה בוחר בוחרת פסק הכרעה ציון מסקנה cevap yanıt cevabı yanıtı daha doğru karar sonuç
puan seçiyorum kazanan tercihim odpowiedź lepsza poprawna wybieram werdykt wynik ocena wybór wygrywa najlepsza lepší odpověď správná
vybírám đáp án hơn đúng chọn kết luận điểm antwoord beter betere juiste kies oordeel conclusie keuze wint winnaar jawaban lebih terbaik
pilih memilih pilihan kesimpulan skor niveau レベル svar svaret bättre bäst bästa rätt väljer bedre bedst vælger velger slutsats răspunsul
răspuns corect aleg válasz jobb helyes vastaus parempi καλύτερη απάντηση σωστή คำตอบ เลือก ถูกต้อง alternativa alternativas benar
jawabannya doğrudur odpowiedzią prawidłowa odpovědí juist keuzeantwoord superiore superieur supérieure supérieur superiores überlegen
giusta giusto giudizio lösung soluzione solución solução רייטינג रेटिंग puanım değerlendirme dirím rätta provides halte porte certa certo
更喜欢 喜欢 更喜歡 倾向于 선택하겠습니다 선호합니다 yanıtını cevabını seçtim voorkeur rigtige oikea bun mai правилният отговор по-добър คำตอบที่ถูกต้องคือ ดีกว่า
پاسخ صحیح بهتر گزینه vergebe donne donnerais doy daría dou daria 给 給 打 ставлю даю veririm geef prefers favour favor favours juistere
correctă corectă kiezen seleccionaría elegiría escolheria scegliere sceglierei choisirais würde wählen bevorzugen entscheiden nilai
oceniam valuto valuterei assegno betyg bedöm karakter poäng pisteet arvosana hodnocení známka értékelés jegy punctaj notă βαθμός คะแนน
vergeben vergäbe attribue noterais otorgo asigno calificaría pontuo avalio declare declaro declaring dichiaro erkläre déclare 判为 判 打分 給分
दूँगा दूंगा dam dałbym ponieważ
""")
PLAIN: Final = _words("""
the a an is are was would be should must my i i'd i'll i'm i've it it's that's that of two so thus hence therefore and in to for say go
goes with here's by clearly clear slightly significantly definitely both assistant response candidate output model reply number completion
letter version given considering everything summary total balance on after careful carefully consideration reviewing weighing evaluating
comparing opinion view these those reasons reason answers responses them me as more most give gave rate assign assigned deserves based
above one but however still nevertheless consequently accordingly am declare find believe think ultimately between simply would've
option's go's die der das dem ist meine mein meiner ansicht nach ich mich für auf fällt also daher somit insgesamt lautet eindeutig damit
jedoch aber deshalb endgültiges endgültige endgültig ist's sind zu finde denke meinung klar abschließende la le les est ma mon je c'est
donc ainsi finale final l'option option au pour avis avec globalement retiens el es mi yo por lo tanto así considero que creo en
conclusión elección opino definitivamente claramente una o é minha meu eu portanto assim opção acho com em geral fico il è mia mio io
quindi pertanto opzione secondo avviso con penso che это мой моя моё я поэтому итак окончательный окончательная окончательное вариант
следовательно таким образом итого считаю что думаю номер є це отже остаточна варіант 我 是 的 为 更 最终 因此 所以 综上所述 综上 综合来看 总体 总体来看 故 本题 该 选项 项 應
应 分 个 個 為 最終 你 的是 认为 認為 我的 答复 回复 第 了 总之 总的来说 觉得 这 就是 選項 いただき は が を の の方が です 私 したがって よって 結論として 最終的な ほう 方 より 選択肢 点 の答え ので だ 最も 結果 良い と 思います
考えます 以上 が最も とします の方 私は 最終的に ます 回答が 가 이 은 는 를 을 저는 따라서 최종 번 입니다 그러므로 점 선택지 최종적으로 나은 좋은 좋습니다 답변이 답변은 가장 제 저의 결론적으로 라고 생각합니다 이다 هي هو لذلك
إذن النهائي النهائية و في رأيي بناء على है मैं अतः इसलिए अंतिम विकल्प हूँ को हूं मेरा मेरी का की היא הוא לכן אני סופי סופית טובה הסופית
הסופי bu nedenle son seçenek şık iyi benim nihai sonuçta więc zatem jest ostateczna opcja moim zdaniem mój dlatego proto là câu trả lời
tốt vậy do đó tôi cuối cùng phương của de het dus daarom mijn ik optie uiteindelijke vind dat adalah yang saya jadi baik oleh karena itu
pilihan akhir är det jag därför mitt er jeg derfor mit endelige slutgiltiga este az η είναι คือ ที่ดีที่สุด rubric which letra lettre
lettera buchstabe buchstaben буква буквой huruf opsi chữ cái assistente asistente assistent assistant's da del della des den nel nella
complesso olarak şıkkı şıkkıdır seçeneği seçeneğidir vì đây opcją ad al response's answer's direi bence sure through options rispetto أرى
أن जो यह there's this here translation se sur 助手 أعتقد لذا إذا olan aan е است از کنم را ha would'd come darei une um un uma ce cette hier
dit ita questa esta livello livelli poziom seviye mức tingkat stufe na para इसे uznaję się 判定为 両方
""")
DENIED: Final = _words("""
worse worst wrong incorrect loser loses lost losing rejected reject weaker weakest inferior bad poor not no never neither nor except but
though although while yet unlike against instead if unless whether initial initially first previous previously earlier draft tempting
question example confidence maximum max reference candidate analysis place second third runner-up disqualified untrue disregard gold quote
quoted says said claims text prompt system user instruction instructions schlechter schlechtere schlechteste falsch falsche nicht kein
keine verlierer erste zweite pire mauvaise mauvais faux fausse pas incorrecte perdant peor incorrecta incorrecto perdedor pior errada
errado não perdedora peggiore sbagliata non errata хуже худший неверный не неправильный гірша 更差 较差 较弱 错误 錯誤 不 最差 悪い 不正解 間違い 誤り 劣 오답 아닌 틀린
أسوأ الأسوأ خطأ ليست ليس الخاطئة غلط गलत नहीं बदतर slechter fout niet gorszy gorsza nie yanlış değil sai không sämre fel inte
""")
BECAUSE: Final = _words("""
because since as due given weil da denn car parce puisque porque ya pois perché poiché потому так omdat ponieważ çünkü vì eftersom fordi
perciocché क्योंकि चूँकि لأنه لأنها لأن 因为 因為 由于 なぜなら ので ため 왜냐하면 때문 bo gdyż want siccome dato puisqu
""")
TIE: Final = _words("""
tie tied draw equal equally unentschieden gleichstand égalité empate pareggio ничья 平局 平手 引き分け 무승부 تعادل बराबर parità remis beraberlik
gelijkspel 무승부로 무승부입니다 引き分けです 平分秋色 oavgjort seri hòa nul 同等です 同等 동점 فروق beraberedir berabere 동률 égaux iguais iguales ebenbürtig gelijk
""")
TIE_BESIDE: Final = _words("""
it it's its is a an the answers responses they both are even so good bad strong weak result verdict final answer my same overall decision
quality identical i call es ist ein essentially match
""")
FINAL: Final = _words("""
final overall revised corrected correction endgültiges endgültige 最终 最終 최종 итог النهائي finale winner
""")
LEVEL: Final = _words("""
score rating grade level mark evaluation note bewertung punktzahl stufe puntuación calificación nota nivel pontuação punteggio voto оценка
评分 得分 分数 等级 評分 評価 スコア 点数 점수 평가 الدرجة التقييم अंक niveau レベル ציון puan ocena điểm skor points
""")
CONCLUDING: Final = _words("""
therefore thus hence so overall final finally consequently accordingly fazit daher somit insgesamt donc ainsi conclusion tanto así
portanto quindi pertanto поэтому итак 因此 所以 综上所述 总体来看 したがって よって 結論として 따라서 لذلك अतः इसलिए לכן dus więc
""")
SHOWING: Final = _words(
    "this that these here dies dieser diese cette ceci esta este questa questo это эта"
)
VERBS: Final = _words("""
is was and or not wins o ist war und oder gewinnt est et ou gagne es era y gana é e vence è vince и или wint jest är er
""")
OTHERS: Final = _words("""
first second former latter other others another zweite zweiten andere anderen seconde autre segunda outra altra seconda другой другая
второй вторая 另 其他 二つ目 他 다른 अन्य آخر الأخرى tweede diğer ikinci druga inna khác lain
""")
TURNING: Final = _words("""
but however though although yet still again except while worse aber jedoch allerdings mais cependant pourtant pero sin mas porém ma però
tuttavia но однако 但 但是 然而 不过 しかし ただ 一方 그러나 하지만 반면 लेकिन परंतु لكن maar echter ama ancak ale jednak nhưng tapi
""")
WITHDRAWN: Final = _words("""
moment korrektur irrtum vertauscht nein zurück rectification erratum retire retiré trompé corrección rectifico retiro equivoqué correção
corrijo enganei correzione rettifico ritiro sbagliato нет исправление поправка беру ошибся ошиблась отзываю düzeltme geri yanıldım تصحيح
تراجع أتراجع أخطأت 更正 撤回 纠正 收回 不对 訂正 取り消します 取り消し 間違えました 정정 정정합니다 취소 취소합니다 아니 सुधार वापस गलती correctie vergiste terugnemen korekta cofam
pomyłka myliłem đính rút nhầm koreksi ralat salah batalkan rättelse tillbaka oprava
""")
